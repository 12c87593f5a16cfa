"""`duckflow doctor` says what is set up and how to fix problems; `duckflow update` says how to update."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from duckflow import __version__
from duckflow.cli.doctor.machine import check_machine, check_settings, check_terminal
from duckflow.cli.doctor.model import DoctorFinding, check_model
from duckflow.cli.parser import Options
from duckflow.i18n.words import Words
from duckflow.installation import this_installation
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out

MODEL_TROUBLE = 5
OTHER_TROUBLE = 1


def run_doctor(options: Options, words: Words, paths: Paths) -> int:
    """Prints the findings. Returns 0 when a conversation would work, 5 when only the model would not, else 1."""
    return asyncio.run(_print_findings(options, words, paths))


def tell_update(_: Options, words: Words, __: Paths) -> int:
    """Says how to update Duckflow. Nothing is fetched or changed."""
    print_out(words("update.version", version=__version__, where=sys.prefix))
    print_out(words("update.how", command=this_installation().upgrade()))
    return 0


async def _print_findings(options: Options, words: Words, paths: Paths) -> int:
    findings: list[DoctorFinding] = []
    async for finding in examine(options.model or "", words, paths, options.lang, Path.cwd()):
        if not options.json:
            for line in lines_of(finding, findings[-1] if findings else None, words):
                print_out(line)
        findings.append(finding)
    if options.json:
        print_out(json.dumps([finding.as_json(words) for finding in findings], ensure_ascii=False))
    else:
        print_out(words("doctor.all_well" if exit_code(findings) == 0 else "doctor.not_well"))
    return exit_code(findings)


async def report(model: str, words: Words, paths: Paths, folder: Path) -> str:
    """Returns all findings as one text, for the chat."""
    findings: list[DoctorFinding] = []
    lines: list[str] = []
    async for finding in examine(model, words, paths, None, folder):
        lines += lines_of(finding, findings[-1] if findings else None, words)
        findings.append(finding)
    return "\n".join([*lines, words("doctor.all_well" if exit_code(findings) == 0 else "doctor.not_well")])


async def examine(
    model: str, words: Words, paths: Paths, language: str | None, folder: Path
) -> AsyncIterator[DoctorFinding]:
    """Yields all findings in turn. The model takes longest, so its check runs meanwhile and comes last."""
    settings, findings = check_settings(paths, folder, language, words)
    model_check = asyncio.create_task(check_model(model, settings, paths))
    try:
        for finding in findings:
            yield finding
        for finding in await asyncio.to_thread(lambda: [*check_machine(settings, paths, folder)]):
            yield finding
        for finding in check_terminal():
            yield finding
        for finding in await model_check:
            yield finding
    finally:
        model_check.cancel()


def lines_of(finding: DoctorFinding, before: DoctorFinding | None, words: Words) -> list[str]:
    """Returns the lines of a finding, below a heading if it begins another part of the report than `before`."""
    heading = [] if before and before.part == finding.part else [words(f"doctor.part.{finding.part}")]
    return [*heading, *(f"  {line}" for line in finding.lines(words))]


def exit_code(findings: list[DoctorFinding]) -> int:
    bad_parts = {finding.part for finding in findings if finding.state == "bad"}
    return 0 if not bad_parts else MODEL_TROUBLE if bad_parts == {"model"} else OTHER_TROUBLE
