"""The smallest mean cost u(x) of steering a particle out of a disk: one for each unit of time, and
|a|²/2 for the velocity a; what is later counts less.

    inf over all controls a of  A(x, a):D²u + b(x, a)·∇u - c(x, a)u - f(x, a)  =  0 in the domain,
    u = g(x) on its boundary

@usage
"""

import cordes
import jax.numpy as jnp


def cheapest(x, jet):
    # The minimum of a·∇u + |a|²/2 over the square of the controls; jet has value, gradient and
    # hessian.
    return jnp.clip(-jet.gradient, -1, 1)


steps = jnp.linspace(-1, 1, 5)
problem = cordes.HJB(
    domain=cordes.Ball([0, 0], 1),
    # @domains
    # The leading axis runs over the controls, here 25 velocities.
    controls=jnp.stack(jnp.meshgrid(steps, steps), axis=-1).reshape(-1, 2),
    # The best control in closed form, where the controls are a continuum; left out, the best of
    # those above is taken.
    maximiser=cheapest,
    sense="inf",  # or "sup", which is meant if this is left out
    A=lambda x, a: jnp.eye(2),  # symmetric and positive definite for every control
    b=lambda x, a: a,  # drift; zero if left out
    c=1.0,  # rate of discount; 0 if left out
    f=lambda x, a: -1 - jnp.sum(a**2) / 2,  # minus the cost for each unit of time
    g=0.0,  # cost at the exit, a function of x; 0 if left out
    # interfaces=[lambda x: x[0]],  # the data and D²u may jump where these are zero
    # The exact solution, if you know it (this is not it): errors are measured with it, no more.
    # exact=lambda x: 1 - jnp.sum(x**2),
    name="@name",  # in tables and reports
)

if __name__ == "__main__":
    solution = cordes.solve(problem)  # tol=1e-4 works until the certified error is that small
    print(solution(problem.domain.center), solution.gradient(problem.domain.center))
    print(solution.certificate)
