"""Tasks of frameworks and build tools whose names say that data goes."""

import re
from collections.abc import Iterator
from itertools import pairwise

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.verdict import CommandFinding, danger

TASK = re.compile(
    r"^(?:db:(?:drop|reset|purge|truncate|wipe|rollback|schema:load|migrate:reset|migrate:down)\S*"
    r"|migrate:(?:fresh|reset|rollback|refresh)|doctrine:(?:database|schema):drop|database:drop|ecto\.(?:drop|reset|rollback)"
    r"|flush|sqlflush|reset_db|flyway:clean|flywayClean|liquibase:dropAll|drop-?all|undo:all|db:migrate:undo:all)$",
    re.IGNORECASE,
)
PAIRS = (
    ("migrate", "reset"),
    ("db", "reset"),
    ("db", "drop"),
    ("database", "drop"),
    ("downgrade", "base"),
    ("drop", "all"),
)
FORCED_PAIRS = (("db", "push"),)
RUNNERS = frozenset(
    ("rails", "rake", "artisan", "php", "manage.py", "python", "django-admin", "prisma", "alembic", "sequelize", "knex")
    + ("typeorm", "mix", "symfony", "console", "flask", "aerich", "flyway", "liquibase", "mvn", "gradle", "gradlew")
    + ("sqlx", "diesel", "drizzle-kit", "supabase", "npm", "yarn", "pnpm", "make", "bin", "dotnet", "sequelize-cli")
)


def judge_task(call: Invocation) -> Iterator[CommandFinding]:
    words = [text for text in call.texts if not text.startswith("-")]
    for word in words[:3]:
        if TASK.match(word):
            yield danger("database", statement=word)
    for pair in pairwise(words):
        if pair in PAIRS or (pair in FORCED_PAIRS and "--force-reset" in call.texts):
            yield danger("database", statement=" ".join(pair))
    if call.program == "flyway" and "clean" in words:
        yield danger("database", statement="flyway clean")
