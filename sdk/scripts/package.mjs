/**
 * Packs the package, asks two judges about it, and uses it as a stranger would: installed into an
 * empty project, where every TypeScript block of the documentation is type-checked, and imported
 * by plain Node.
 */

import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const SDK = dirname(dirname(fileURLToPath(import.meta.url)));
const DOCS = join(SDK, "..", "docs");
const PAGES = [
  join(SDK, "README.md"),
  ...readdirSync(DOCS)
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(DOCS, name)),
];
const LIMIT_BYTES = 30_000;
// What a project that uses the hook has anyway.
const REACT = ["@types/react", "csstype", "react"];

const SETTINGS = {
  compilerOptions: {
    target: "es2022",
    module: "nodenext",
    lib: ["es2023", "dom"],
    jsx: "react-jsx",
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    types: [],
  },
};

const SMOKE = `
import * as sdk from "@rungent/sdk";
const state = sdk.reduceRungentEvent(sdk.initialRungentState, sdk.parseEvent(
  '{"v":1,"id":"evt_1","seq":1,"type":"run.started","session_id":"s","run_id":"r",' +
  '"created_at":"2026-01-02T03:04:05Z","data":{"status":"running"}}'
));
if (state.status !== "running") throw new Error("the reducer does not work");
new sdk.RungentClient({ baseUrl: "/api" });
`;

const folder = mkdtempSync(join(tmpdir(), "rungent-pack-"));
try {
  const packed = JSON.parse(npm("pack", "--json", "--pack-destination", folder));
  const { filename, size, files } = Array.isArray(packed) ? packed[0] : Object.values(packed)[0];
  const tarball = join(folder, filename);
  if (size > LIMIT_BYTES) throw new Error(`${size} bytes are packed, more than ${LIMIT_BYTES}`);
  judge("publint", "run", "--strict", tarball);
  judge("attw", tarball, "--profile", "esm-only", "--format", "ascii");
  const blocks = use(tarball);
  console.log(`${filename}: ${size} bytes in ${files.length} files; ${blocks} blocks type-checked`);
} finally {
  rmSync(folder, { recursive: true });
}

function use(tarball) {
  const project = join(folder, "project");
  mkdirSync(project);
  const write = (name, text) => writeFileSync(join(project, name), text);
  write("package.json", JSON.stringify({ name: "stranger", private: true, type: "module" }));
  write("tsconfig.json", JSON.stringify(SETTINGS));
  write("smoke.mjs", SMOKE);
  const quiet = ["--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"];
  npm("install", "--prefix", project, ...quiet, tarball);
  run(process.execPath, join(project, "smoke.mjs"));
  const found = PAGES.flatMap((page) => [
    ...readFileSync(page, "utf8").matchAll(/^```(tsx?)\n(.*?)^```$/gms),
  ]);
  if (found.length === 0) throw new Error("no page has a block");
  for (const [index, [, language, text]] of found.entries())
    write(`block${index}.${language}`, text);
  for (const name of REACT) {
    const link = join(project, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(SDK, "node_modules", name), link);
  }
  judge("tsc", "-p", project);
  return found.length;
}

function npm(...args) {
  // As `npm run` says: there may be no npm on the path.
  return run(process.execPath, process.env.npm_execpath, ...args);
}

function judge(program, ...args) {
  run(join(SDK, "node_modules", ".bin", program), ...args);
}

function run(program, ...args) {
  try {
    return execFileSync(program, args, {
      cwd: SDK,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  } catch (error) {
    console.error(`${program} ${args.join(" ")}\n${error.stdout}${error.stderr}`);
    process.exit(1);
  }
}
