// Import a Worker's modules with the interpreter that the Worker runs on, and record what they compile:
// node recorded_imports.mjs PYODIDE PROGRAM MODULES PACKAGES FILE. The program imports and records.
import { readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, program, modules, packages, file] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
// As for the modules' bytecode: without a fixed seed it is another each time, and columns of errors are left out.
const interpreter = await loadPyodide({ env: { HOME: "/", PYTHONHASHSEED: "0", PYTHONNODEBUGRANGES: "1" } });
for (const [mounted, root] of [["/modules", modules], ["/packages", packages], ["/target", dirname(file)]]) {
  interpreter.FS.mkdir(mounted);
  interpreter.FS.mount(interpreter.FS.filesystems.NODEFS, { root }, mounted);
}
try {
  interpreter.runPython(readFileSync(program, "utf8"));
  interpreter.globals.get("record")("/modules", "/packages", `/target/${basename(file)}`);
} catch (error) {
  console.error(error.message); // Node would print the source of Pyodide with it
  process.exit(1);
}
process.exit(0); // whatever a module has begun
