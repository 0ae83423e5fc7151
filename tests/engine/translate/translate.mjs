// Reads a JSON array of [WGSL, shader model], writes one of [errors, MSL bytes, HLSL bytes]; the first line is naga's version.
import { readFileSync } from "node:fs";
import { nagaVersion, parseWgsl, validate, writeHlsl, writeMsl } from "naga-wasm";

const OLDEST_METAL = [2, 4];

function translated([source, shaderModel]) {
  const errors = [];
  const attempt = (work) => {
    try {
      return work();
    } catch (error) {
      errors.push(`${error.kind}: ${error.formatted}`);
    }
  };
  const module = attempt(() => parseWgsl(source));
  const info = module && attempt(() => validate(module));
  const msl = info && attempt(() => writeMsl(module, info, { langVersion: OLDEST_METAL }));
  const hlsl = info && attempt(() => writeHlsl(module, info, { shaderModel }));
  info?.free();
  module?.free();
  return [errors, msl?.length ?? 0, hlsl?.length ?? 0];
}

console.log(nagaVersion);
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(translated)));
