// Bundles `bundle.js` into `echarts.min.js`, with the notices that its licences ask for on top.
import { build } from "esbuild";
import { readFileSync } from "node:fs";

const read = (path) => readFileSync(new URL(`node_modules/${path}`, import.meta.url), "utf8").trim();
const version = (name) => JSON.parse(read(`${name}/package.json`)).version;

const notice = `Parts of Apache ECharts ${version("echarts")}, bundled.

${read("echarts/NOTICE")}
Licensed under the Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0

It includes parts of d3:
${read("echarts/licenses/LICENSE-d3")}

It includes ZRender ${version("zrender")}:
${read("zrender/LICENSE")}

It includes tslib ${version("tslib")}:
${read("tslib/LICENSE.txt")}`;

await build({
  entryPoints: ["bundle.js"],
  outfile: "echarts.min.js",
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "echarts",
  target: "es2018",
  charset: "ascii",
  legalComments: "none",
  // Development checks and their warnings are compiled out.
  define: { "process.env.NODE_ENV": '"production"' },
  banner: { js: `/*!\n${notice.replaceAll("*/", "* /")}\n*/` },
});
