"""A work folder that is trusted and brings programs, and the files that a model puts in their way."""

import json
from pathlib import Path
from typing import Any

from duckflow.state.question import Answer
from tests.journeys.story import Story, decide, respond

TRUST, MORE, DONE, NO = (Answer(choice=key) for key in ("trust", "more", "done", "no"))
END = decide(respond("ok"), step="PLANNING")

# A hook that does its work leaves a line in `ran` of the real folder; a file that the model puts in its way leaves
# `hit`.
PYTHON = "import os, json\nopen(os.environ['DUCKFLOW_PROJECT_DIR'] + '/ran', 'a').write('ran\\n')\n"
PYTHON_HIT = "import os\nopen(os.environ['OUTSIDE'], 'w').write('hit')\n"
SHELL = '#!/bin/sh\necho ran >> "$DUCKFLOW_PROJECT_DIR"/ran\n'
SHELL_HIT = '#!/bin/sh\necho hit > "$OUTSIDE"\n'
NODE = "require('fs').appendFileSync(process.env.DUCKFLOW_PROJECT_DIR + '/ran', 'ran\\n')\n"
NODE_HIT = "require('fs').writeFileSync(process.env.OUTSIDE, 'hit')\n"
MAKE = 'check:\n\techo ran >> "$$DUCKFLOW_PROJECT_DIR"/ran\n'
MAKE_HIT = 'check:\n\techo hit > "$$OUTSIDE"\n'


def bring(folder: Path, event: str, command: str, matcher: str = "", **more: Any) -> None:
    group: dict[str, Any] = {"hooks": [{"type": "command", "command": command, **more}]}
    put(
        folder,
        {".claude/settings.json": json.dumps({"hooks": {event: [group | ({"matcher": matcher} if matcher else {})]}})},
    )


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if text.startswith("->"):
            path.symlink_to(text.removeprefix("->"))
        else:
            path.write_text(text)
            path.chmod(0o755)


async def trusted(tmp_path: Path, **settings: Any) -> Story:
    """Makes a folder that is trusted already, so that its hooks get a question of their own."""
    put(tmp_path / "work", {".claude/skills/duck/SKILL.md": "---\nname: duck\ndescription: quack\n---\n"})
    story = Story(tmp_path, [END], **settings)
    story.answers = [TRUST]
    await story.tell("hello")
    await story.close()
    return story
