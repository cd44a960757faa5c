// Compile modules of Python with the interpreter that the Worker runs on: node bytecode.mjs PYODIDE TAG SOURCES TARGET FOLDER
// The files of SOURCES become `<name>.pyc` in TARGET; tracebacks call them `FOLDER<name>`. Bytecode for another TAG than the
// interpreter's own is refused.
import { pathToFileURL } from "node:url";

const [pyodide, tag, sources, target, folder] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
// Without a fixed seed sets of constants are written in another order each time; columns of errors are a fifth of the bytes.
const interpreter = await loadPyodide({ env: { HOME: "/", PYTHONHASHSEED: "0", PYTHONNODEBUGRANGES: "1" } });
for (const [mounted, root] of [["/sources", sources], ["/target", target]]) {
  interpreter.FS.mkdir(mounted);
  interpreter.FS.mount(interpreter.FS.filesystems.NODEFS, { root }, mounted);
}
interpreter.globals.set("tag", tag);
interpreter.globals.set("folder", folder);
try {
  interpreter.runPython(`
import pathlib, py_compile, sys

assert sys.implementation.cache_tag == tag, sys.implementation.cache_tag
for path in pathlib.Path("/sources").rglob("*.py"):
    name = path.relative_to("/sources")
    py_compile.compile(
        path,
        cfile=f"/target/{name}c",
        dfile=f"{folder}{name}",
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
`);
} catch (error) {
  console.error(error.message); // Node would print the source of Pyodide with it
  process.exit(1);
}
