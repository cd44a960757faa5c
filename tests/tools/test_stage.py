from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import retain
from retain.models.embedders.static import MODEL, MULTILINGUAL, TABLES
from tools import stage as module
from tools.local_config import local_config
from tools.paths import BUILD, PRODUCTION_CONFIG, ROOT
from tools.public_files import folder_of, public_files
from tools.stage import local_variables, mirror, read_config, stage, wanted_files, with_compiled


def tree(folder: Path) -> dict[str, bytes]:
    """Return the files below the folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_production_stages_the_worker_its_objects_and_its_agents_and_nothing_else() -> None:
    staged = wanted_files(read_config(PRODUCTION_CONFIG))
    assert {"entry.py", "assembly/root.py", "bindings.py", "retain/__init__.py", "agents.json"} <= staged.keys()
    assert "durable_objects/agent_runtime.py" in staged
    assert "workers/__init__.py" not in staged, "Cloudflare's SDK is a package of that name"
    assert "__init__.py" not in staged, "the module root is not a package"
    others = [name for name in staged if not name.endswith(".py")]
    assert others == ["adapters/exchange.mjs", "agents.json"]
    assert not [
        name
        for name in staged
        if name.startswith(("retain/cli/", "retain/host/", "retain/testing/", "tests/", "tools/"))
    ]
    assert not [name for name in staged if name.startswith("retain/contracts/backends/")]


ENTRIES = ("entry", "durable_objects.agent_runtime")


def _imported(source: bytes) -> set[str]:
    """Return the names that a module imports anywhere when it runs: modules, and names that may be modules."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # a module that is imported by its name
    return found


def _reached(modules: dict[str, bytes], entries: Iterable[str]) -> set[str]:
    """Return the modules that the entries import, directly or not, with their packages."""
    reached: set[str] = set()
    pending = list(entries)
    while pending:
        name = pending.pop()
        if name in modules and name not in reached:
            reached.add(name)
            pending += [name.rpartition(".")[0], *_imported(modules[name])]
    return reached


def test_every_staged_module_is_imported_by_the_worker() -> None:
    staged = wanted_files(read_config(PRODUCTION_CONFIG))
    modules = {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): content
        for name, content in staged.items()
        if name.endswith(".py")
    }
    tools = [name for name in modules if name.startswith("agents.tools.")]
    reached = _reached(modules, [*ENTRIES, *tools])
    assert set(ENTRIES) <= reached
    assert modules.keys() - reached == set()


def test_every_module_of_the_library_that_the_worker_imports_is_staged() -> None:
    library = {
        ".".join(path.relative_to(ROOT / "workers").with_suffix("").parts).removesuffix(".__init__"): path.read_bytes()
        for path in (ROOT / "workers").rglob("*.py")
    }
    staged = wanted_files(read_config(PRODUCTION_CONFIG))
    for name in _reached(library, ["entry"]):
        file = name.replace(".", "/")
        assert {f"{file}.py", f"{file}/__init__.py"} & staged.keys(), f"{name} is imported, and not uploaded"


def test_a_function_tool_can_import_every_public_name() -> None:
    staged = wanted_files({})
    homes = {getattr(retain, name).__module__ for name in retain.__all__ if name != "__version__"}
    files = {Path(str(sys.modules[home].__file__)).relative_to(ROOT / "workers").as_posix() for home in homes}
    assert files <= staged.keys()


def test_the_staged_agents_are_those_of_the_folder() -> None:
    staged = json.loads(wanted_files({})["agents.json"])
    assert {"order_triage", "refund_decision", "sdr"} <= staged["agents"].keys()
    assert staged["agents"]["order_triage"]["delegates"] == ["refund_decision"]
    assert {agent["model"]["script"] for agent in staged["agents"].values()} - {None} <= staged["scripts"].keys()


def test_the_file_of_secrets_replaces_variables_of_the_local_configuration(tmp_path: Path) -> None:
    path = tmp_path / ".dev.vars"
    assert local_variables(path) == {}
    path.write_text("# CHAT_MODEL=no\n\nCHAT_PROVIDER=openai\nCHAT_API_KEY = 'a=b'\n")
    assert local_variables(path) == {"CHAT_PROVIDER": "openai", "CHAT_API_KEY": "a=b"}
    path.write_text(
        "export CHAT_PROVIDER=openai # mine\nCHAT_API_KEY=sk-1\t# of the team\n  CHAT_MODEL: gpt\nEMPTY=\nCHAT_MODEL=last\n"
        "HASH='a # b'\nLINES=\"a\\nb\"\nPLAIN='a\\nb'\nPEM='-----\nzwei = 2\n-----'\r\nquoted=\"it's\"\nno variable\n"
    )
    assert local_variables(path) == {
        "CHAT_PROVIDER": "openai",
        "CHAT_API_KEY": "sk-1",
        "CHAT_MODEL": "last",
        "EMPTY": "",
        "HASH": "a # b",
        "LINES": "a\nb",
        "PLAIN": "a\\nb",
        "PEM": "-----\nzwei = 2\n-----",
        "quoted": "it's",
    }
    path.write_bytes(b"CHAT_MODEL=Zo\xeb\n")
    with pytest.raises(SystemExit, match=r"\.dev\.vars: it is not UTF-8"):
        local_variables(path)


@pytest.mark.parametrize(
    ("provider", "model", "tables"),
    [
        ("static", MODEL, [TABLES[MODEL]]),
        ("static", MULTILINGUAL, [TABLES[MULTILINGUAL]]),
        ("workers-ai", "@cf/baai/bge-m3", []),
        ("openai", "text-embedding-3-small", []),
    ],
)
def test_only_the_embedding_table_that_is_chosen_is_staged(provider: str, model: str, tables: list[str]) -> None:
    staged = wanted_files({"vars": {"EMBEDDING_PROVIDER": provider, "EMBEDDING_MODEL": model}})
    assert [name for name in staged if name.endswith(".bin")] == tables


def test_a_table_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"no embedding table static-minilm-265\.bin in models/"):
        wanted_files({"vars": {"EMBEDDING_PROVIDER": "static", "EMBEDDING_MODEL": "static-minilm-265"}})


def test_a_production_configuration_with_the_development_flag_is_refused(tmp_path: Path) -> None:
    config = local_config(read_config(PRODUCTION_CONFIG), {"RETAIN_ENVIRONMENT": "production"})
    with pytest.raises(SystemExit, match="python_workers_development"):
        stage(config, tmp_path / "build")
    assert not (tmp_path / "build").exists()


def test_a_configuration_of_an_earlier_version_is_refused_and_what_it_lacks_is_named(tmp_path: Path) -> None:
    config = read_config(PRODUCTION_CONFIG)
    config["durable_objects"] = {"bindings": config["durable_objects"]["bindings"][:1]}
    config["triggers"] = {"crons": ["0 3 * * SUN", "0 4 * * *"]}
    config["rules"] = config["rules"][:1]
    with pytest.raises(SystemExit) as refused:
        stage(config, tmp_path / "build")
    assert (
        "lacks the binding TENANT_WRITER, the schedule */5 * * * *, the rule that uploads adapters/exchange.mjs:"
        in str(refused.value)
    )
    assert not (tmp_path / "build").exists()


def test_what_only_an_environment_of_the_configuration_has_is_not_missing(tmp_path: Path) -> None:
    config = read_config(PRODUCTION_CONFIG)
    moved = ("kv_namespaces", "d1_databases", "r2_buckets", "vectorize", "durable_objects", "triggers", "rules")
    config["env"] = {"live": {name: config.pop(name) for name in moved}}
    assert stage(config, tmp_path / "build", sources_only=True)


def test_staging_twice_changes_nothing(tmp_path: Path) -> None:
    config = read_config(PRODUCTION_CONFIG)
    target = tmp_path / "built"
    wanted = with_compiled(wanted_files(config), compiled=True)
    assert stage(config, target) == len(wanted) + len(public_files())
    assert stage(config, target) == 0
    assert tree(target) == wanted
    stage(config, target, sources_only=True)
    assert tree(target) == wanted_files(config)
    assert tree(folder_of(target)) == public_files()


def test_what_is_public_is_the_document_its_page_with_the_licence_of_what_renders_it_and_the_console() -> None:
    assert public_files().keys() == {
        "_headers",
        "_redirects",
        "console.html",
        "console/console.css",
        "console/console.js",
        "openapi.html",
        "openapi.json",
        "openapi/page.js",
        "openapi/swagger-ui-bundle.js",
        "openapi/swagger-ui.css",
        "openapi/LICENSE",
        "openapi/NOTICE",
    }
    assert read_config(PRODUCTION_CONFIG)["assets"] == {"directory": folder_of(BUILD).name}


def test_the_target_holds_exactly_what_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "old" / "deep").mkdir(parents=True)
    (tmp_path / "old" / "deep" / "gone.py").write_text("gone")
    (tmp_path / "same.py").write_text("same")
    (tmp_path / "changed.py").write_text("before")
    wanted = {"same.py": b"same", "changed.py": b"after", "new/module.py": b"new"}
    assert mirror(wanted, tmp_path) == 3
    assert tree(tmp_path) == wanted
    assert not (tmp_path / "old").exists()


def test_a_file_that_did_not_change_is_not_written(tmp_path: Path) -> None:
    mirror({"a.py": b"1", "b.py": b"2"}, tmp_path)
    (tmp_path / "a.py").chmod(0o444)
    before = (tmp_path / "a.py").stat().st_mtime_ns
    assert mirror({"a.py": b"1", "b.py": b"3"}, tmp_path) == 1
    assert (tmp_path / "a.py").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wrangler.toml", 'name = "retain"\n[vars]\nA = "1"\n'),
        ("wrangler.json", '{"name": "retain", "vars": {"A": "1"}}'),
    ],
)
def test_a_configuration_is_read_from_toml_and_from_json(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_config(tmp_path / name) == {"name": "retain", "vars": {"A": "1"}}


@pytest.mark.parametrize(("name", "text"), [("w.toml", b"[vars"), ("w.json", b"{"), ("w.toml", b"# Zo\xeb")])
def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: bytes) -> None:
    (tmp_path / name).write_bytes(text)
    with pytest.raises(SystemExit, match=name):
        read_config(tmp_path / name)


def test_an_agent_that_no_model_could_answer_is_not_staged(tmp_path: Path) -> None:
    (tmp_path / "desk.yaml").write_text("type: desk\ndescription: d\ninstructions: i\n")
    assert "agents.json" in wanted_files({}, agents=tmp_path)
    with pytest.raises(SystemExit, match=r"desk\.yaml: "):
        wanted_files({"vars": {"CHAT_PROVIDER": "scripted"}}, agents=tmp_path)


@pytest.mark.parametrize(("environment", "provider"), [("development", "openai"), ("production", "workers-ai")])
def test_the_file_of_secrets_counts_for_a_local_server_alone_and_bytecode_is_made_for_an_upload(
    environment: str, provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged: list[dict[str, Any]] = []
    compiled: list[bool] = []
    (tmp_path / ".dev.vars").write_text("CHAT_PROVIDER=openai")
    config = read_config(PRODUCTION_CONFIG)
    config["vars"] |= {"RETAIN_ENVIRONMENT": environment, "CHAT_PROVIDER": "workers-ai"}
    (tmp_path / "wrangler.json").write_text(json.dumps(config))
    monkeypatch.setattr(module, "DEVELOPMENT_VARIABLES", tmp_path / ".dev.vars")

    def wanted(config: dict[str, Any]) -> dict[str, bytes]:
        staged.append(config)
        return {}

    def with_bytecode(files: dict[str, bytes], **options: bool) -> dict[str, bytes]:
        compiled.append(options["compiled"])
        return files

    monkeypatch.setattr(module, "wanted_files", wanted)
    monkeypatch.setattr(module, "with_compiled", with_bytecode)
    assert module.main(["--config", str(tmp_path / "wrangler.json"), "--target", str(tmp_path / ".build")]) == 0
    assert staged[0]["vars"]["CHAT_PROVIDER"] == provider
    assert compiled == [environment == "production"]
