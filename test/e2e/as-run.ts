import { nodeEnvironment, nodeFlags } from '../../bin/node-settings.mjs';

/** For a gateway whose memory is measured: how `parley` runs Node.js, as far as variables can express it; one flag takes a module. */
export const asRun: Readonly<Record<string, string>> = {
  ...nodeEnvironment(process.cwd()),
  NODE_OPTIONS: [
    ...nodeFlags.filter((flag) => flag.startsWith('--max-semi-space-size')),
    `--import=${new URL('expose-gc.ts', import.meta.url)}`,
  ].join(' '),
};
