"""A node's configuration has every binding that the Worker reads, and nothing of a secret."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tools.cluster.capnp_text import Embedded, text_of
from tools.cluster.configuration import SECRETS, Bucket, Cluster, node_files
from tools.cluster.migrations import migration_list
from tools.cluster.write import cluster_config, main
from tools.paths import NODE_BIN, PRODUCTION_CONFIG, ROOT
from tools.stage import read_config

_CLUSTER = Cluster(Bucket("s3://retain/cluster", ("aws_region=auto",)), "0123456789abcdef" * 4)
_NOT_ON_NODES = {"AI", "CALLER_RATE", "TENANT_RATE"}
"""Bindings that workerd does not have; the Worker works without each of them."""


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """The content of a node's folder."""
    return node_files(cluster_config(read_config(PRODUCTION_CONFIG), {}), _CLUSTER)


def test_every_binding_and_variable_of_production_is_bound_on_a_node(files: dict[str, bytes]) -> None:
    production = read_config(PRODUCTION_CONFIG)
    names = set(production["vars"]) | {each["name"] for each in production["durable_objects"]["bindings"]}
    for kind in ("kv_namespaces", "d1_databases", "r2_buckets", "vectorize"):
        names |= {each["binding"] for each in production[kind]}
    bound = set(re.findall(r'\(name = "([A-Z0-9_]+)"', files["config.capnp"].decode()))
    assert names - bound == set()
    assert not _NOT_ON_NODES & bound
    assert set(SECRETS) <= bound


def test_a_node_reaches_servers_with_public_certificates_and_those_of_its_own_network(files: dict[str, bytes]) -> None:
    written = " ".join(files["config.capnp"].decode().split())
    reached = '(allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))'
    assert f'(name = "internet", network = {reached})' in written


def test_nodes_share_the_bucket_and_the_key_and_apply_migrations_at_an_address_of_its_own(
    files: dict[str, bytes],
) -> None:
    written = " ".join(files["config.capnp"].decode().split())
    shared = f'(bucket = "s3://retain/cluster", bucketOptions = ["aws_region=auto"], key = "{_CLUSTER.key}")'
    assert f"cluster = {shared}" in written
    assert (
        '(name = "http", http = (), service = "site"), (name = "migrate", http = (), service = "migrations")' in written
    )


def test_nodes_have_the_schedules_of_production(files: dict[str, bytes]) -> None:
    [written] = re.findall(r'\(name = "CRONS", json = (".*")\)', files["config.capnp"].decode())
    assert json.loads(json.loads(written)) == {"RETAIN": read_config(PRODUCTION_CONFIG)["triggers"]["crons"]}


def test_objects_of_a_class_are_its_own_and_have_a_database(files: dict[str, bytes]) -> None:
    written = files["config.capnp"].decode()
    made = re.findall(r'\(className = "(\w+)", uniqueKey = "(\w+)", enableSql = true\)', written)
    assert made == [(name, name) for name, _ in made]
    objects = {each["class_name"] for each in read_config(PRODUCTION_CONFIG)["durable_objects"]["bindings"]}
    stores = {"KVNamespace", "D1Database", "R2BucketObject", "StandInIndex", "Schedule"}
    assert sorted(name for name, _ in made) == sorted(objects | stores)


def test_every_secret_that_wrangler_toml_names_is_read_from_the_environment() -> None:
    listed = PRODUCTION_CONFIG.read_text().partition("# Secrets, set with")[2].partition("\n\n")[0]
    assert set(re.findall(r"[A-Z][A-Z_]+_(?:KEY|HEADERS)", listed)) == set(SECRETS)


def test_workerd_reads_the_configuration_and_all_that_it_embeds(files: dict[str, bytes], tmp_path: Path) -> None:
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    command = [str((NODE_BIN / "workerd").resolve()), "compile", "--config-only", "config.capnp"]
    compiled = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert compiled.returncode == 0, compiled.stderr.decode()
    assert b"AgentRuntime" in compiled.stdout


def test_a_migration_is_the_statements_that_sqlite_itself_would_execute() -> None:
    whole, split = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    for migration in migration_list(ROOT / "migrations"):
        whole.executescript((ROOT / "migrations" / str(migration["name"])).read_text())
        statements = migration["statements"]
        assert isinstance(statements, list)
        for statement in statements:
            split.execute(statement)
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
    assert split.execute(schema).fetchall() == whole.execute(schema).fetchall()


def test_text_escapes_what_is_in_a_value() -> None:
    assert text_of({"name": 'a"b\n', "is": True, "list": [1, Embedded("x.py")]}) == (
        '(name = "a\\"b\\n", is = true, list = [1,\nembed "x.py"])'
    )


def test_workerd_reads_letters_of_any_alphabet(tmp_path: Path) -> None:
    text = 'Bücher "für" 東京\n🙂'
    written = text_of({"services": [{"name": text, "network": {"allow": ["public"]}}]})
    config = tmp_path / "config.capnp"
    config.write_text(f'using Workerd = import "/workerd/workerd.capnp";\nconst config :Workerd.Config = {written};\n')
    command = [str((NODE_BIN / "workerd").resolve()), "compile", "--config-only", str(config)]
    compiled = subprocess.run(command, capture_output=True, check=False)
    assert compiled.returncode == 0, compiled.stderr.decode()
    assert text.encode() in compiled.stdout


def test_a_setting_replaces_what_nodes_have_otherwise() -> None:
    settings = {"EMBEDDING_PROVIDER": "openai", "CHAT_MODEL": "mine"}
    made = cluster_config(read_config(PRODUCTION_CONFIG), settings)["vars"]
    assert (made["EMBEDDING_PROVIDER"], made["CHAT_MODEL"]) == ("openai", "mine")
    assert made["EMBEDDING_DIMENSIONS"] == "256"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"--bucket": ""}, "--bucket must be s3://name/prefix or gs://name/prefix, not ''", id="no bucket"),
        pytest.param({"--key-file": "absent"}, "there is no file absent", id="no key"),
        pytest.param({"--settings": "absent"}, "there is no file absent", id="no settings"),
    ],
)
def test_what_is_absent_is_named(
    tmp_path: Path, options: dict[str, str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").write_text("k" * 64)
    given = {"--bucket": "s3://b/p", "--key-file": str(tmp_path / "key"), **options}
    with pytest.raises(SystemExit):
        main([str(tmp_path / "node"), *(word for pair in given.items() for word in pair)])
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "node").exists()


@pytest.mark.parametrize(
    ("key", "settings", "problem"),
    [
        pytest.param("short", "", "needs 32", id="a short key"),
        pytest.param("k" * 64, "CHAT_MODELL=x", "no variable CHAT_MODELL", id="an unknown setting"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_written(
    tmp_path: Path, key: str, settings: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").write_text(key)
    (tmp_path / "settings").write_text(settings)
    options = ["--bucket", "s3://b/p", "--key-file", str(tmp_path / "key"), "--settings", str(tmp_path / "settings")]
    with pytest.raises(SystemExit) as refused:
        main([str(tmp_path / "node"), *options])
    assert problem in str(refused.value) + capsys.readouterr().err
    assert not (tmp_path / "node").exists()


def test_the_folder_with_the_key_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k" * 64)
    assert main([str(tmp_path / "node"), "--bucket", "s3://b/p", "--key-file", str(tmp_path / "key")]) == 0
    assert (tmp_path / "node" / "config.capnp").stat().st_mode & 0o077 == 0
