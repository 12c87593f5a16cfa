"""Names the action that a question is about, so that an answer may repeat it: "yes, delete it"."""

import re

from duckflow.agent.narrow_yes import UNDO
from duckflow.state.question import Question

DEEDS = {
    "edit": "write",
    "make": "write",
    "rm": "delete",
    "mv": "move",
    "mkdir": "write",
    "curl": "download",
    "wget": "download",
}
"""Verbs in names of operations, and programs, that mean the same as another verb."""
NAMED_ACTION = r"(?:\$ )?([a-z]{2,})(?: ([a-z]{2,}))?(?: [^;&|<>`$\n]*)?"
"""Matches a single command, its program and the word after it, which may be a verb: `git commit -m ready`."""
TAKES_COMMIT_BACK = r"(?:\$ )?git (?:revert\b(?! --(?:abort|quit|continue|skip))|reset\b.*(?:HEAD|@)[~^])"
"""Matches a command of git that takes a commit back. Without a commit before HEAD, `git reset` only drops changes."""


def deeds_asked(question: Question) -> frozenset[str]:
    """Returns the verb for what the operations of the question do, and the program and the action of a single command;
    an empty set if they do different things. To undo new files means to delete them."""
    operations, impacts = (question.gate.operations, question.gate.impacts) if question.gate else ((), ())
    verbs = {DEEDS.get(verb, verb) for operation in operations for verb in [operation.rpartition(".")[2].split("_")[0]]}
    if operations == UNDO and all(impact.change == "delete" for impact in impacts):
        return frozenset({*UNDO, "delete"})
    if len(verbs) != 1:
        return frozenset()
    commands = question.gate.commands if question.gate and len(operations) == 1 else ()
    named = re.fullmatch(NAMED_ACTION, commands[0]) if len(commands) == 1 else None
    if named is None:
        return frozenset(verbs)
    program, action = named.group(1, 2)
    taken_back = (*UNDO, "uncommit") if re.match(TAKES_COMMIT_BACK, named[0]) else ()
    named_action = (action,) if action and program not in DEEDS else ()
    return frozenset((*verbs, *taken_back, *named_action, DEEDS.get(program, program)))
