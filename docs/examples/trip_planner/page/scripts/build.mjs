/**
 * Builds the page into ../static, which is committed and packed: whoever installs needs no Node.
 *
 * With `--check` it writes nothing and fails when the committed files differ. The names hold the
 * digest of the content, so browsers may keep them for good.
 */

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const PAGE = dirname(dirname(fileURLToPath(import.meta.url)));
const STATIC = join(PAGE, "..", "static");

const made = await bundle();
if (process.argv.includes("--check")) check();
else write();

/** The files of the page by name. */
async function bundle() {
  const { outputFiles } = await build({
    absWorkingDir: PAGE,
    entryPoints: { app: "src/main.tsx", style: "src/style.css" },
    outdir: "out",
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    write: false,
    logLevel: "warning",
  });
  const text = (extension) => outputFiles.find(({ path }) => path.endsWith(extension)).text;
  const named = {
    script: ["app", "js", text(".js")],
    style: ["style", "css", text(".css")],
    icon: ["icon", "svg", readFileSync(join(PAGE, "src", "icon.svg"), "utf8")],
  };
  const files = new Map();
  let index = readFileSync(join(PAGE, "src", "index.html"), "utf8");
  for (const [place, [stem, extension, content]] of Object.entries(named)) {
    const digest = createHash("sha256").update(content).digest("hex").slice(0, 10);
    const name = `${stem}-${digest}.${extension}`;
    files.set(name, content);
    index = index.replace(`{${place}}`, `assets/${name}`);
  }
  files.set("index.html", index);
  files.set("licenses.txt", licenses());
  return files;
}

/** The notices of the libraries in the bundle, which minifying takes away. */
function licenses() {
  const { dependencies } = JSON.parse(readFileSync(join(PAGE, "package.json"), "utf8"));
  const notices = Object.keys(dependencies).map((name) => {
    const folder = join(PAGE, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return notices.join(`\n${"-".repeat(72)}\n\n`);
}

function check() {
  const committed = new Set(readdirSync(STATIC));
  const wrong = [...made].filter(
    ([name, content]) =>
      !committed.has(name) || readFileSync(join(STATIC, name), "utf8") !== content,
  );
  const names = new Set([...wrong.map(([name]) => name), ...committed].filter((n) => !made.has(n)));
  for (const [name] of wrong) names.add(name);
  if (names.size > 0) {
    console.error(`static/ is not what the sources give: ${[...names].join(", ")}`);
    console.error("Build the page anew: npm run build");
    process.exit(1);
  }
  console.log(`static/ is up to date: ${sizes()}`);
}

function write() {
  rmSync(STATIC, { recursive: true, force: true });
  mkdirSync(STATIC);
  for (const [name, content] of made) writeFileSync(join(STATIC, name), content);
  console.log(sizes());
}

function sizes() {
  return [...made].map(([name, content]) => `${name} ${Buffer.byteLength(content)}`).join(", ");
}
