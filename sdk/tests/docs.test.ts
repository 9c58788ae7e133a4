import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import * as sdk from "../src/index.js";
import * as react from "../src/react.js";

const page = readFileSync(join(fileURLToPath(import.meta.url), "../../../docs/sdk.md"), "utf8");

/** The code at the beginning of the rows of a section's tables. */
function listed(title: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? "";
  return [...section.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`(\w+)/g)].map(([, name = ""]) => name),
  );
}

test("the page lists every method of the client", () => {
  const methods = Object.getOwnPropertyNames(sdk.RungentClient.prototype);
  expect(new Set(listed("Client"))).toEqual(
    new Set(["baseUrl", "fetch", "headers", "credentials", ...methods.slice(1)]),
  );
});

test("the page lists every field of the state", () => {
  expect(listed("State")).toEqual(expect.arrayContaining(Object.keys(sdk.initialRungentState)));
});

test("the page names all that the package exports", () => {
  const exported = Object.keys({ ...sdk, ...react });
  expect(exported.filter((name) => !page.includes(name))).toEqual([]);
});
