// The export `parley/plugin`: from the bundle if there is one for the current sources, otherwise from the sources.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleFolder } from './bundle.mjs';

const bundle = join(bundleFolder(fileURLToPath(new URL('..', import.meta.url))), 'plugin-kit.mjs');
const kit = existsSync(bundle)
  ? await import(pathToFileURL(bundle).href)
  : await import('../src/contracts/plugin-kit.ts');

export const { definePlugin, defineTool, z } = kit;
export const { accountId, channelId, conversationId, eventKey, messageId, peerId } = kit;
