"""The problem files that `cordes new` writes. Each solves as it is within seconds; every option
stands in it, with a comment.

A line such as `# epsilon = 0.3` (TOML) or `    # epsilon=0.3,` (Python) is an option that is not
used: it works as it stands once the `# ` is taken away, and a test takes all of them away. `@name`
stands for the name of the problem, `@title` for the line of a TOML file that gives it, `@file` for
the file as a shell wants it written.
"""

_COMMANDS = """\
#   cordes check @file
#   cordes solve @file
#   cordes solve @file --tol 1e-4 --out @name-result
"""

_TOML_HEAD = """\
#
# Numbers stand as they are, formulas in quotes. They know x1, x2, … and r, the length of x; pi and e; + - * / **; sin cos tan arcsin arccos arctan arctan2
# sinh cosh tanh exp log sqrt cbrt abs sign floor min max norm; where(x1 > 0, 1, 2). A line such as "# epsilon = 0.3" is an option that is not used:
# take the # away. All keys are in docs/toml.md.

schema = 1                      # version of this format
"""

_TOML_BALL = """
[domain]                        # bounded and convex; it sets the dimension
type = "ball"
center = [0, 0]
radius = 1
"""

_TOML_BOX = """
[domain]                        # bounded and convex; it sets the dimension
type = "box"                    # with as many coordinates as you like
lower = [-1, -1]
upper = [1, 1]
"""

_TOML_DOMAINS = """\
# Other types, with their keys:
#   "box"               lower = [-1, -1], upper = [1, 1]
#   "ball"              center = [0, 0], radius = 1
#   "ellipsoid"         center = [0, 0], axes = [2, 1]
#   "polygon"           vertices = [[0, 0], [2, 0], [1, "sqrt(3)"]]
#   "regular-polygon"   sides = 6, radius = 1, center = [0, 0], angle = "pi/2"
"""

LINEAR_TOML = (
    """\
# The mean life u(x) of a particle that starts at x. It dies when it leaves a square, or by itself at the rate c; it jitters more on the right.
#
#   A(x):D²u + b(x)·∇u - c(x)u = f(x) in the domain,     u = g(x) on its boundary
#
"""
    + _COMMANDS
    + _TOML_HEAD
    + """\
kind = "linear"                 # others: cordes new --help
@title# in tables and reports
"""
    + _TOML_BOX
    + _TOML_DOMAINS
    + """
[definitions]                   # names for formulas; each may use those above it
side = "sign(x1)"

[equation]
A = [["1.5 + 0.5*side", 0.3],   # symmetric and positive definite; one number stands for a multiple of the identity
     [0.3, 1]]
b = ["-x1/2", "-x2/2"]          # drift, here towards the centre; zero if left out
c = 1                           # mind the sign: c ≥ 0 is the good case; 0 if left out
f = -1
g = 0                           # boundary values; 0 if left out
interfaces = ["x1"]             # A, b, c, f and D²u may jump where these are zero: declare every such line
# epsilon = 0.3                 # a lower bound of the Cordès ε that you vouch for; found from A if left out
# exact = "(1 - x1**2)*(1 - x2**2)"   # the exact solution, if you know it (this is not it): errors are measured with it, nothing else
"""
)

HJB_TOML = (
    """\
# The largest of several linear equations, one for each control. This one is made so that its solution is known, u = cos(x1) cos(x2); the best control
# changes along a parabola, which the solver must find:
#
#   sup over all controls a of  A(x, a):D²u + b(x, a)·∇u - c(x, a)u - f(x, a)  =  0 in the domain,     u = g(x) on its boundary
#
"""
    + _COMMANDS
    + _TOML_HEAD
    + """\
kind = "hjb"                    # others: cordes new --help
@title# in tables and reports
"""
    + _TOML_BALL
    + _TOML_DOMAINS
    + """
[definitions]                   # names for formulas; each may use those above it, and the control
u = "cos(x1)*cos(x2)"
cross = "sin(x1)*sin(x2)"       # its mixed second derivative
loss = "max(a*(x1 - x2**2), 0)" # what a control loses where it is not the best

[equation]
# The controls: numbers, called a in formulas; vectors such as [[0, 1], [1, 0]], called a1, a2; equally spaced numbers, {from = 0, to = "pi", count = 9}; or
# a list of such ranges for all combinations, called a1, a2, …
controls = [-1, 1]
sense = "sup"                   # or "inf"
A = [[2, "a/2"],                # symmetric and positive definite for every control
     ["a/2", 2]]
b = [0, 0]                      # drift
c = 0                           # rate of discount
f = "-4*u + a*cross + loss"
g = "u"                         # boundary values, without the control; 0 if left out
# interfaces = ["x1"]           # the data and D²u may jump where these are zero; without the control
exact = "u"                     # the exact solution, if you know it: errors are measured with it, nothing else
"""
)

MONGE_AMPERE_TOML = (
    """\
# A convex function with a given determinant of its second derivatives:
#
#   det D²u = f(x) in the domain,  u convex,     u = g(x) on its boundary
#
"""
    + _COMMANDS
    + _TOML_HEAD
    + """\
kind = "monge-ampere"           # others: cordes new --help
@title# in tables and reports
"""
    + _TOML_BALL
    + _TOML_DOMAINS
    + """
[definitions]                   # names for formulas; each may use those above it
hill = "exp(-norm(x1 - 0.3, x2)**2)"

[equation]
f = "1 + 2*hill"                # never negative
g = 0                           # boundary values; convex along straight edges
# interfaces = ["x1"]           # f and D²u may jump where these are zero: declare every such line
# exact = "(r**2 - 1)/2"        # the exact solution, if you know it (this is not it): errors are measured with it, nothing else
"""
)

_PYTHON_HEAD = """\

Coefficients are functions of one point x, an array with as many entries as there are dimensions, written with jax.numpy; or constants. A line such as
"# exact=…," is an option that is not used: take the # away.
\"\"\"

import cordes
import jax.numpy as jnp
"""

_PYTHON_COMMANDS = """
    cordes check @file
    cordes solve @file
    cordes solve @file --tol 1e-4 --out @name-result
    python @file
"""

_PYTHON_DOMAINS = """\
    # Bounded and convex. Others: Box([-1, -1], [1, 1]), Ball([0, 0], 1), Ellipsoid([0, 0], [2, 1]), Polygon([[0, 0], [2, 0], [1, 2]]); all but the last
    # in any dimension. Your own: a subclass of AbstractDomain.
"""

_PYTHON_TAIL = """\
    name="@name",  # in tables and reports
)

if __name__ == "__main__":
    solution = cordes.solve(problem)  # tol=1e-4 works until the certified error is that small
    print(solution(problem.domain.center), solution.gradient(problem.domain.center))
    print(solution.certificate)
"""

LINEAR_PYTHON = (
    '''\
"""The mean life u(x) of a particle that starts at x. It dies when it leaves a square, or by itself at the rate c; it jitters more on the right.

    A(x):D²u + b(x)·∇u - c(x)u = f(x) in the domain,     u = g(x) on its boundary
'''
    + _PYTHON_COMMANDS
    + _PYTHON_HEAD
    + """

def diffusion(x):
    return jnp.array([[1.5 + 0.5 * jnp.sign(x[0]), 0.3], [0.3, 1.0]])


problem = cordes.Linear(
    domain=cordes.Box([-1, -1], [1, 1]),
"""
    + _PYTHON_DOMAINS
    + """\
    A=diffusion,  # symmetric and positive definite
    b=lambda x: -x / 2,  # drift, here towards the centre; zero if left out
    c=1.0,  # mind the sign: c ≥ 0 is the good case; 0 if left out
    f=-1.0,
    g=0.0,  # boundary values; 0 if left out
    interfaces=[lambda x: x[0]],  # A, b, c, f and D²u may jump where these are zero: declare every such line
    # epsilon=0.3,  # a lower bound of the Cordès ε that you vouch for; found from A if left out
    # exact=lambda x: (1 - x[0] ** 2) * (1 - x[1] ** 2),  # the exact solution, if you know it (this is not it): errors are measured with it, nothing else
"""
    + _PYTHON_TAIL
)

HJB_PYTHON = (
    '''\
"""The smallest mean cost u(x) of steering a particle out of a disk: one for each unit of time, and |a|²/2 for the velocity a; what is later counts less.

    inf over all controls a of  A(x, a):D²u + b(x, a)·∇u - c(x, a)u - f(x, a)  =  0 in the domain,     u = g(x) on its boundary
'''
    + _PYTHON_COMMANDS
    + _PYTHON_HEAD
    + """

def cheapest(x, jet):
    # The minimum of a·∇u + |a|²/2 over the square of the controls; jet has value, gradient and hessian.
    return jnp.clip(-jet.gradient, -1, 1)


steps = jnp.linspace(-1, 1, 5)
problem = cordes.HJB(
    domain=cordes.Ball([0, 0], 1),
"""
    + _PYTHON_DOMAINS
    + """\
    controls=jnp.stack(jnp.meshgrid(steps, steps), axis=-1).reshape(-1, 2),  # the leading axis runs over the controls, here 25 velocities
    maximiser=cheapest,  # the best control in closed form, where the controls are a continuum; left out, the best of those above is taken
    sense="inf",  # or "sup", which is meant if this is left out
    A=lambda x, a: jnp.eye(2),  # symmetric and positive definite for every control
    b=lambda x, a: a,  # drift; zero if left out
    c=1.0,  # rate of discount; 0 if left out
    f=lambda x, a: -1 - jnp.sum(a**2) / 2,  # minus the cost for each unit of time
    g=0.0,  # cost at the exit, a function of x; 0 if left out
    # interfaces=[lambda x: x[0]],  # the data and D²u may jump where these are zero
    # exact=lambda x: 1 - jnp.sum(x**2),  # the exact solution, if you know it (this is not it): errors are measured with it, nothing else
"""
    + _PYTHON_TAIL
)

MONGE_AMPERE_PYTHON = (
    '''\
"""A convex function with a given determinant of its second derivatives.

    det D²u = f(x) in the domain,  u convex,     u = g(x) on its boundary
'''
    + _PYTHON_COMMANDS
    + _PYTHON_HEAD
    + """
problem = cordes.MongeAmpere(
    domain=cordes.Ball([0, 0], 1),
"""
    + _PYTHON_DOMAINS
    + """\
    f=lambda x: 1 + 2 * jnp.exp(-jnp.sum((x - jnp.array([0.3, 0.0])) ** 2)),  # never negative
    g=0.0,  # boundary values; convex along straight edges
    # interfaces=[lambda x: x[0]],  # f and D²u may jump where these are zero: declare every such line
    # exact=lambda x: (jnp.sum(x**2) - 1) / 2,  # the exact solution, if you know it (this is not it): errors are measured with it, nothing else
"""
    + _PYTHON_TAIL
)

TRANSPORT_PYTHON = (
    '''\
"""The map that carries one density to another at the least total squared distance: ∇u of a convex u.

    target(∇u(x)) det D²u = source(x) in the domain,     ∇u takes the domain onto the target domain
'''
    + _PYTHON_COMMANDS
    + _PYTHON_HEAD
    + """
problem = cordes.Transport(
    domain=cordes.Ball([0, 0], 1),
"""
    + _PYTHON_DOMAINS
    + """\
    source=lambda x: jnp.exp(-x[0]),  # a positive density
    target_domain=cordes.Ellipsoid([0, 0], [2, 1]),  # another convex domain; left out, the domain itself
    # target=lambda y: 2 + y[0] / 2,  # another positive density; left out, the uniform one
    normalise=True,  # scale both to one; without it, masses that differ are refused
    # exact=lambda x: x,  # the exact map, if you know it (this is not it): errors are measured with it, nothing else
"""
    + _PYTHON_TAIL.replace(
        "solution(problem.domain.center), solution.gradient(problem.domain.center)",
        "solution.map(problem.domain.center), solution.cost",
    )
)

# The text for each kind and the end of the file's name.
TEMPLATES = {
    ("linear", ".toml"): LINEAR_TOML,
    ("hjb", ".toml"): HJB_TOML,
    ("monge-ampere", ".toml"): MONGE_AMPERE_TOML,
    ("linear", ".py"): LINEAR_PYTHON,
    ("hjb", ".py"): HJB_PYTHON,
    ("monge-ampere", ".py"): MONGE_AMPERE_PYTHON,
    ("transport", ".py"): TRANSPORT_PYTHON,
}
KINDS = tuple(dict.fromkeys(kind for kind, _ in TEMPLATES))
