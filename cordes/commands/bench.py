"""`cordes bench`: what a solve costs."""

import cordes
from cordes.commands.arguments import BenchArguments
from cordes.commands.output import DONE, NOT_AS_ASKED, Report
from cordes.commands.process import Call
from cordes.reports import tables
from cordes.studies import bench


def make_report(given: BenchArguments, call: Call) -> Report:
    facts = bench.bench(cordes.problem(given.problem), given.seed)
    done = cordes.Result(facts["result"]).as_asked(None)
    return Report(facts, tables.bench_table(facts), DONE if done else NOT_AS_ASKED)
