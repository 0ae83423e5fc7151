// Compiles kernels with Dawn, Chrome's WebGPU, without a GPU. Standard input: {"package", "kernels": [{"code",
// "layout", "constants", "subgroups"}]}; standard output: a JSON list of [index, message], one a refusal.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const input = JSON.parse(readFileSync(0, 'utf8'));
const { create, globals } = await import(pathToFileURL(input.package).href);
Object.assign(globalThis, globals);
const adapter = await create(['backend=null']).requestAdapter();
const features = ['subgroups'].filter((name) => adapter.features.has(name));
const device = await adapter.requestDevice({ requiredFeatures: features });
const kinds = { read: 'read-only-storage', write: 'storage' };
const refusals = [];

for (const [index, kernel] of input.kernels.entries()) {
  device.pushErrorScope('validation');
  const module = device.createShaderModule({ code: (kernel.subgroups ? 'enable subgroups;\n' : '') + kernel.code });
  const entries = kernel.layout.map((kind, binding) => (
    { binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: kinds[kind] } }));
  const layout = device.createPipelineLayout({ bindGroupLayouts: [device.createBindGroupLayout({ entries })] });
  device.createComputePipeline({ layout, compute: { module, entryPoint: 'main', constants: kernel.constants } });
  const error = await device.popErrorScope();
  if (error) refusals.push([index, error.message]);
}
process.stdout.write(JSON.stringify(refusals), () => process.exit(0));
