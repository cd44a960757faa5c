// Import a Worker's modules with the interpreter that the Worker runs on, and record what they compile:
// node recorded_imports.mjs PYODIDE PROGRAM MODULES PACKAGES TARGET MAIN LATER. The program imports, and writes the last two,
// which are files of TARGET.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [pyodide, program, modules, packages, target, main, later] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
// As for the modules' bytecode: without a fixed seed it is another each time, and columns of errors are left out.
const interpreter = await loadPyodide({ env: { HOME: "/", PYTHONHASHSEED: "0", PYTHONNODEBUGRANGES: "1" } });
for (const [mounted, root] of [["/modules", modules], ["/packages", packages], ["/target", target]]) {
  interpreter.FS.mkdir(mounted);
  interpreter.FS.mount(interpreter.FS.filesystems.NODEFS, { root }, mounted);
}
try {
  interpreter.runPython(readFileSync(program, "utf8"));
  interpreter.globals.get("record")("/modules", "/packages", `/target/${main}`, `/target/${later}`);
} catch (error) {
  console.error(error.message); // Node would print the source of Pyodide with it
  process.exit(1);
}
process.exit(0); // whatever a module has begun
