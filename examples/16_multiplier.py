"""PINN and C-PINN

Training by Adam, as in the paper on C-PINN: the residual is multiplied by the Cordès multiplier γ =
tr A/|A|² (C-PINN) or not (PINN). The multiplier weighs points. Where coefficients vary it keeps
large ones from drowning the others, as here, where γ varies forty-fold; where γ is constant it
changes nothing. Both networks start from the same weights. One seed proves little: `cordes study`
runs many. Least squares, the default, is printed beside them.
"""

import sys

from matplotlib.figure import Figure

import cordes

problem = cordes.gallery["ex4.1-smooth"]
print(cordes.check(problem))
# Smaller than in the paper, for the sake of seconds.
settings = {"preset": "paper", "width": 32, "depth": 3, "points": 1000, "learning_rate": 1e-3}
epochs = [100, 200, 400, 800]
errors = {}
for name, multiplier in (("PINN", False), ("C-PINN", True)):
    errors[name] = []
    for count in epochs:
        solution = cordes.solve(problem, "adam", multiplier=multiplier, epochs=count, **settings)
        errors[name].append(solution.error().l2)
        print(f"{name:<14}{count} epochs: {errors[name][-1]:.1e}")
print(f"least squares {cordes.solve(problem).error().l2:.1e}")

axes = (figure := Figure(figsize=(6, 4), layout="constrained")).subplots()
for name, found in errors.items():
    axes.loglog(epochs, found, "o-", label=name)
axes.set(
    xlabel="epochs of Adam",
    ylabel="root mean square error",
    title=problem.name,
    xticks=epochs,
    xticklabels=epochs,
)
axes.minorticks_off()
axes.legend()
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "16_multiplier.png", dpi=120)

gain = errors["PINN"][-1] / errors["C-PINN"][-1]
assert gain > 1.5, "the error of PINN over that of C-PINN after 800 epochs"
