// Runs an exported model on images in Chromium by onnxruntime-web: node web.mjs MODEL.onnx IMAGES CxHxW BATCH LOGITS
// Writes the logits as little-endian float32 and prints the seconds of all runs. Run by scripts/peers/onnx/check.

import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, extname, join, resolve } from "node:path";

const [model, images, shape, batch, out] = process.argv.slice(2);
const require = createRequire(resolve(process.env.ONNX_NODE, "package.json"));
const puppeteer = require("puppeteer-core");
const runtime = dirname(require.resolve("onnxruntime-web"));

const TYPES = { ".html": "text/html", ".mjs": "text/javascript", ".wasm": "application/wasm" };
const files = {
  "/": Buffer.from("<!doctype html><title>peer</title><script src=/ort/ort.wasm.min.js></script>"),
  "/model": readFileSync(model),
  "/images": readFileSync(images),
};
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  try {
    const body = files[pathname] ?? readFileSync(join(runtime, pathname.replace(/^\/ort\//, "")));
    const type = pathname === "/" ? TYPES[".html"] : (TYPES[extname(pathname)] ?? "application/octet-stream");
    response.writeHead(200, { "content-type": pathname.endsWith(".js") ? TYPES[".mjs"] : type }).end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // Chromium has no sandbox for root. The page runs only the files above.
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
const page = await browser.newPage();
const faults = [];
page.on("pageerror", (error) => faults.push(error.message));
await page.goto(`http://127.0.0.1:${server.address().port}/`, { waitUntil: "load" });
const found = await page.evaluate(
  async (shape, batch) => {
    const bytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());
    ort.env.wasm.wasmPaths = "/ort/";
    ort.env.wasm.numThreads = 1;
    const session = await ort.InferenceSession.create(await bytes("/model"), { executionProviders: ["wasm"] });
    const images = await bytes("/images");
    const pixels = shape.reduce((product, length) => product * length, 1);
    const count = images.length / pixels;
    const start = performance.now();
    const logits = [];
    for (let first = 0; first < count; first += batch) {
      const some = images.slice(first * pixels, (first + batch) * pixels);
      const tensor = new ort.Tensor("uint8", some, [some.length / pixels, ...shape]);
      const outputs = await session.run({ images: tensor }, ["logits"]);
      logits.push(...outputs.logits.data);
    }
    return { seconds: (performance.now() - start) / 1000, logits, agent: navigator.userAgent };
  },
  shape.split("x").map(Number),
  Number(batch),
);
await browser.close();
server.close();
if (faults.length > 0) throw new Error(faults.join("; "));
writeFileSync(out, Buffer.from(Float32Array.from(found.logits).buffer));
console.log(JSON.stringify({ seconds: found.seconds, agent: found.agent }));
