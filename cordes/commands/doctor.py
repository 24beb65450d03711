"""`cordes doctor`: is everything here as cordes needs it? Facts about the machine, and findings:
what was looked at, what was found, and what to do about it."""

import contextlib
import math
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table
from rich.text import Text
from threadpoolctl import threadpool_info

import cordes
from cordes.commands.arguments import DoctorArguments
from cordes.commands.output import DONE, NOT_AS_ASKED, Report
from cordes.commands.process import Call
from cordes.runtime.packages import installed_version, numbers, requirements

SHOWN = ("jax", "jaxlib", "numpy", "scipy")
SIZE = 256
# The rounding errors of a product of SIZE × SIZE normal numbers, as a share of the largest sum of
# |a||b|, are about 2e-7 and 4e-16; TF32 makes 1e-4.
SINGLE, DOUBLE = 1e-6, 1e-14
# The error that the small problem must reach: it solves to about 1e-13.
SELF_TEST_ERROR = 1e-8
LARGE_CACHE = 4 << 30
REPORT_IT = "Report it together with the output of `cordes doctor --json`."


class Finding(NamedTuple):
    """One thing that was looked at. `status`: `good`, `note` (worth knowing, nothing is wrong),
    `bad` (cordes cannot work as it should)."""

    name: str
    status: str
    found: str
    remedy: str | None = None


def make_report(given: DoctorArguments, call: Call) -> Report:
    facts = examine()
    return Report(facts, doctor_table(facts), DONE if facts["healthy"] else NOT_AS_ASKED)


def examine() -> dict[str, Any]:
    """All facts and findings; `healthy` says that no finding is bad. What a look at one thing
    throws is a finding, and the others are still looked at."""
    facts: dict[str, Any] = {"healthy": False}
    findings: list[Finding] = []
    for look in (_versions, _extras, _devices, _precision, _cache, _cores, self_test):
        name = look.__name__.removeprefix("_")
        try:
            facts[name], found = look()
        except Exception as error:
            thrown = f"{type(error).__name__}: {error}"
            facts[name], found = None, [Finding(name.replace("_", "-"), "bad", thrown, REPORT_IT)]
        findings += found
    facts["findings"] = [finding._asdict() for finding in findings]
    facts["healthy"] = all(finding.status != "bad" for finding in findings)
    return facts


def doctor_table(facts: dict[str, Any]) -> Table:
    """The findings, one row each; what to do stands below what was found."""
    wrong = "Something is wrong: the lines with ✗ say what to do."
    table = Table(
        title=Text("cordes doctor", style="bold"),
        title_justify="left",
        show_header=False,
        caption=Text("All is well." if facts["healthy"] else wrong),
        caption_justify="left",
    )
    table.add_column(no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    marks = {"good": ("✓", "green"), "note": ("·", "yellow"), "bad": ("✗", "bold red")}
    for finding in facts["findings"]:
        lines = Text(finding["found"])
        if finding["remedy"]:
            style = "bold yellow" if finding["status"] == "bad" else "dim"
            lines.append(f"\n{finding['remedy']}", style=style)
        table.add_row(Text(*marks[finding["status"]]), finding["name"], lines)
    return table


# Packages -----------------------------------------------------------------------------------------


def _versions() -> tuple[dict[str, Any], list[Finding]]:
    wanted = requirements().get(None, {})
    versions: dict[str, Any] = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cordes": cordes.__version__,
    }
    versions |= {name: installed_version(name) for name in {**dict.fromkeys(SHOWN), **wanted}}
    missing = [name for name in wanted if versions[name] is None]
    old = [
        f"{name} {versions[name]} (needed: {least})"
        for name, least in wanted.items()
        if versions[name] and numbers(versions[name]) < numbers(least)
    ]
    shown = ", ".join(f"{name} {versions[name]}" for name in ("cordes", "python", *SHOWN))
    finding = Finding("versions", "good", shown)
    installed = installed_version("cordes")
    if missing or old:
        wrong = {"missing": missing, "too old": old}
        found = "; ".join(f"{what}: {', '.join(names)}" for what, names in wrong.items() if names)
        remedy = "Install cordes again in this environment: python -m pip install --upgrade cordes"
        finding = Finding("versions", "bad", found, remedy)
    elif installed not in (None, cordes.__version__):
        remedy = (
            "The package was installed before its version changed: python -m pip install "
            "--editable . in the checkout."
        )
        finding = Finding("versions", "note", f"{shown}; installed as cordes {installed}", remedy)
    return versions, [finding]


def _extras() -> tuple[dict[str, bool], list[Finding]]:
    """Which optional groups of packages are complete. Nothing of cordes itself needs them."""
    extras = {
        name: all(installed_version(package) for package in packages)
        for name, packages in requirements().items()
        if name
    }
    if not extras:
        return {}, []
    shown = ", ".join(f"{name} {'yes' if present else 'no'}" for name, present in extras.items())
    return extras, [Finding("optional packages", "good", shown)]


# The machine --------------------------------------------------------------------------------------


def _devices() -> tuple[list[str], list[Finding]]:
    devices = [f"{device.platform}:{device.id} {device.device_kind}" for device in jax.devices()]
    finding = Finding("devices", "good", ", ".join(devices))
    if jax.default_backend() == "cpu" and shutil.which("nvidia-smi") is not None:
        remedy = (
            'There is an NVIDIA card that JAX does not use: python -m pip install "jax[cuda13]" '
            "(or cuda12), or unset JAX_PLATFORMS."
        )
        finding = finding._replace(status="note", remedy=remedy)
    return devices, [finding]


def _precision() -> tuple[dict[str, Any], list[Finding]]:
    """Whether float64 is on, and how exact products on the default device are: on a GPU single
    precision may silently mean three digits."""
    facts: dict[str, Any] = {
        "x64": bool(_setting("jax_enable_x64")),
        "matmul_precision": _setting("jax_default_matmul_precision"),
    }
    findings = [Finding("float64", "good", "on")]
    if not facts["x64"]:
        remedy = "Unset JAX_ENABLE_X64, or set it to 1: without float64 there is no certificate."
        findings = [Finding("float64", "bad", "off", remedy)]
    for name, dtype, limit in (("float32", jnp.float32, SINGLE), ("float64", jnp.float64, DOUBLE)):
        if name == "float64" and not facts["x64"]:
            continue
        facts[f"{name}_product_error"] = error = product_error(dtype)
        found = (
            f"relative error {error:.1e} on {jax.devices()[0].platform}, precision "
            f"{facts['matmul_precision']}"
        )
        remedy = (
            f"At most {limit:.0e} is right. Unset JAX_DEFAULT_MATMUL_PRECISION and "
            "NVIDIA_TF32_OVERRIDE, and do not change jax_default_matmul_precision."
        )
        status, remedy = ("good", None) if error <= limit else ("bad", remedy)
        findings.append(Finding(f"{name} products", status, found, remedy))
    return facts, findings


def _setting(name: str) -> Any:
    """A setting of JAX; their names are made at run time."""
    return getattr(jax.config, name, None)


def product_error(dtype: Any) -> float:
    """The largest error of one matrix product on the default device, against NumPy's in extended or
    double precision, as a share of |a||b|."""
    generator = np.random.default_rng(0)
    left, right = (generator.standard_normal((SIZE, SIZE)).astype(dtype) for _ in range(2))
    product = np.asarray(jax.jit(jnp.matmul)(left, right), np.longdouble)
    exact = left.astype(np.longdouble) @ right.astype(np.longdouble)
    return float(np.max(np.abs(product - exact)) / np.max(np.abs(left) @ np.abs(right)))


def _cache() -> tuple[dict[str, Any], list[Finding]]:
    """Where compiled programs are kept, which the first solve of a kind makes within seconds."""
    folder = _setting("jax_compilation_cache_dir")
    facts: dict[str, Any] = {"folder": folder, "bytes": None, "files": None, "writable": None}
    if folder is None:
        remedy = "Unset CORDES_CACHE to keep compiled programs between runs."
        return facts, [Finding("cache", "note", "off: every run compiles anew", remedy)]
    sizes = list(_sizes(Path(folder)))
    facts |= {"bytes": sum(sizes), "files": len(sizes), "writable": _writable(Path(folder))}
    found = f"{folder}: {len(sizes)} files, {sum(sizes) / 1e6:.0f} MB"
    finding = Finding("cache", "good", found)
    if not facts["writable"]:
        remedy = (
            "Make it writable, or set XDG_CACHE_HOME to a folder that is; CORDES_CACHE=0 does "
            "without, and every run compiles anew."
        )
        finding = Finding("cache", "bad", f"{found}, cannot be written", remedy)
    elif sum(sizes) > LARGE_CACHE:
        remedy = "It may be deleted at any time; it fills again."
        finding = finding._replace(status="note", remedy=remedy)
    return facts, [finding]


def _sizes(folder: Path) -> Iterator[int]:
    """Sizes of the files in a folder; another run may be taking some away just now."""
    for entry in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if entry.is_file():
                yield entry.stat().st_size


def _writable(folder: Path) -> bool:
    """Whether a file can be made there. The folder itself is not made: looking changes nothing."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _cores() -> tuple[dict[str, Any], list[Finding]]:
    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    pools = [
        {"library": pool["internal_api"], "threads": pool["num_threads"]}
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    facts = {"usable": usable, "of": os.cpu_count(), "blas": pools, "load": load}
    found = (
        f"{usable} of {os.cpu_count()} usable, load {load:.1f}, BLAS threads "
        f"{', '.join(str(pool['threads']) for pool in pools) or 'unknown'}"
    )
    finding = Finding("cores", "good", found)
    if load > 1.5 * usable:
        remedy = "Other programs use the cores: solves will take longer than they need to."
        finding = finding._replace(status="note", remedy=remedy)
    return facts, [finding]


# The self-test ------------------------------------------------------------------------------------


def self_test() -> tuple[dict[str, Any], list[Finding]]:
    """Solve a small problem with a known solution: the answer must be exact to many digits, and the
    certified bounds must lie above the true error."""

    def exact(x):
        return jnp.exp(x[0]) * jnp.sin(x[1])

    # A:D²u = 2 u - u + 2 · ½ · uₓᵧ
    problem = cordes.Linear(
        cordes.Ball([0, 0], 1),
        [[2.0, 0.5], [0.5, 1.0]],
        f=lambda x: exact(x) + jnp.exp(x[0]) * jnp.cos(x[1]),
        g=exact,
        exact=exact,
        name="self-test",
    )
    began = time.perf_counter()
    solution = cordes.solve(problem, features=200, progress=False)
    error, certificate = solution.error(), solution.certificate
    assert error is not None
    assert certificate is not None
    facts = {
        "result": solution.result.value,
        "seconds": time.perf_counter() - began,
        "error": {"l2": error.l2, "linf": error.linf},
        "bound": {"rms": certificate.rms, "Linf": certificate.Linf},
        "reason": certificate.reason,
    }
    return facts, [judge_self_test(facts)]


def judge_self_test(facts: dict[str, Any]) -> Finding:
    """What the numbers of the self-test say."""
    error, bound = facts["error"], facts["bound"]
    shown = f"{facts['result']} in {facts['seconds']:.1f} s: error {error['l2']:.1e}"
    if bound["rms"] is None or bound["Linf"] is None:
        shown += f", but no certificate: {facts['reason']}"
        without = "Without float64 there is none: look at the line above."
        remedy = REPORT_IT if _setting("jax_enable_x64") else without
        return Finding("self-test", "bad", shown, remedy)
    shown += f", certified {bound['rms']:.1e}"
    below = error["l2"] <= bound["rms"] and error["linf"] <= bound["Linf"]
    if not (math.isfinite(error["linf"]) and below):
        shown += ": the bound is smaller than the error"
        return Finding("self-test", "bad", shown, f"Trust no certificate here. {REPORT_IT}")
    if facts["result"] != "converged" or error["linf"] > SELF_TEST_ERROR:
        shown += f", largest error {error['linf']:.1e}"
        right = f"An error below {SELF_TEST_ERROR:.0e} is right: look at the precision above."
        return Finding("self-test", "bad", shown, f"{right} {REPORT_IT}")
    return Finding("self-test", "good", shown)
