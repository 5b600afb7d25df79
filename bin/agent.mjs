// The export `parley/agent`: from the bundle if there is one for the current sources, otherwise from the sources.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleFolder } from './bundle.mjs';

const bundle = join(bundleFolder(fileURLToPath(new URL('..', import.meta.url))), 'agent-kit.mjs');
const kit = existsSync(bundle)
  ? await import(pathToFileURL(bundle).href)
  : await import('../src/library/agent-kit.ts');

export const { agentLoop, agentLoopContinue, anthropic, costLimit, defineTool, demoModel, openai, z } = kit;
export const { finishReasonOf, textOf, toolCallsOf, userMessage } = kit;
