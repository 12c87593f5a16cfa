"""Databases: statements that drop, empty or overwrite without a condition."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, RunsText
from duckflow.safety.commands.verdict import CommandFinding, danger

CLIENTS = frozenset(
    ("psql", "mysql", "mariadb", "sqlite3", "sqlite", "sqlcmd", "sqlplus", "duckdb", "clickhouse-client", "clickhouse")
    + ("cqlsh", "mongosh", "mongo", "redis-cli", "valkey-cli", "keydb-cli", "influx", "cockroach", "snowsql", "bq")
    + (
        "trino",
        "presto",
        "usql",
        "pgcli",
        "mycli",
        "litecli",
        "neo4j-admin",
        "cypher-shell",
        "osqueryi",
        "isql",
        "tsql",
    )
    + ("supabase", "turso", "wrangler", "rails", "prisma", "spanner-cli", "arangosh", "couchbase-cli")
)
DROPS: dict[str, frozenset[str]] = {
    "dropdb": frozenset(),
    "dropuser": frozenset(),
    "pg_restore": frozenset(("--clean", "-c")),
    "mysqladmin": frozenset(("drop", "shutdown")),
    "mongorestore": frozenset(("--drop",)),
}
STATEMENT = re.compile(
    r"\bdrop\s+(?:table|database|schema|index|view|materialized|role|user|column|keyspace|collection|owned|trigger"
    r"|function|procedure|type|extension|sequence|tablespace|constraint|partition|policy|publication|subscription)\b"
    r"|\btruncate\s+(?:table\s+)?[\w\"'`.]+"
    r"|\balter\s+table\s+[\w\"'`.]+\s+drop\b|\bdetach\s+delete\b|\bflush(?:all|db)\b"
    r"|\bdrop(?:Database|Collection|Index(?:es)?|User|AllUsers\w*)?\s*\(|\bdelete(?:Many|One)?\s*\(|\bremove\s*\(\s*\{?\s*\}?"
    r"|\bshutdown\b|\bdebug\s+segfault\b|\bconfig\s+(?:set|resetstat|rewrite)\b|\breset\s+master\b"
    r"|\bcluster\s+(?:reset|flushslots)\b|\bscript\s+flush\b|\bfunction\s+flush\b|\bdel(?:ete)?\s+\*|\bxtrim\b"
    r"|\bpurge\s+binary\b|\bgrant\s+all\b|\bload_extension\b|\binto\s+outfile\b|\bwritefile\s*\(",
    re.IGNORECASE,
)
TRUE_CONDITION = re.compile(r"\bwhere\s+(?:1\s*=\s*1|true|1)\s*(?:;|$|[\"'])", re.IGNORECASE)
DELETE_FROM = re.compile(r"\bdelete\s+from\b", re.IGNORECASE)
UPDATE_SET = re.compile(r"\bupdate\s+\S+\s+set\b", re.IGNORECASE)
SHELL_ESCAPE = re.compile(r"(?:\\!|\.shell|\.system)\s*(.+)")
KEYS = re.compile(r"^(?:flushall|flushdb|shutdown|del|unlink)$", re.IGNORECASE)


def judge_database(call: Invocation) -> Iterator[Opinion]:
    """The statements given as arguments or fed to the client."""
    texts = list(call.texts)
    if call.feed and call.feed.text:
        texts.append(call.feed.text)
    if call.program in ("redis-cli", "valkey-cli", "keydb-cli"):
        for text in texts:
            if KEYS.match(text):
                yield danger("database", statement=text)
        texts.append(" ".join(call.texts))
    for text in texts:
        yield from _judge_statement(text)
        for found in SHELL_ESCAPE.finditer(text):
            yield RunsText(found[1])


def _judge_statement(text: str) -> Iterator[CommandFinding]:
    found = STATEMENT.search(text)
    if found:
        yield danger("database", statement=found[0])
    for statement in text.split(";"):
        if DELETE_FROM.search(statement) or UPDATE_SET.search(statement):
            lowered = statement.lower()
            if "where" not in lowered or TRUE_CONDITION.search(statement + ";"):
                yield danger("database", statement=statement.strip())


def judge_database_tool(call: Invocation) -> Iterator[CommandFinding]:
    """Tools that drop as their name or an option says."""
    options = DROPS[call.program]
    if not options or not options.isdisjoint(call.texts):
        yield danger("database", statement=" ".join((call.program, *call.texts)))
