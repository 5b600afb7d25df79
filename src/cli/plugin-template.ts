import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Returns the files of a new plugin: a tool that works, its test, and what to know. */
export function templateOf(name: string): Readonly<Record<string, string>> {
  // The sources and the bundle are both two folders below the installation.
  const kit = pathToFileURL(resolve(import.meta.dirname, '../../bin/plugin-kit.mjs')).href;
  const tool = name.replaceAll('-', '_');
  return {
    'index.ts': sourceOf(name, tool),
    'index.test.ts': testOf(tool),
    'package.json': manifestOf(name, kit),
    'README.md': readmeOf(name),
  };
}

function sourceOf(name: string, tool: string): string {
  return `import { definePlugin, defineTool, z } from 'parley/plugin';

export const plugin = definePlugin({
  id: '${name}',
  configSchema: z.strictObject({ greeting: z.string().default('Hello') }),
  setup(api, config) {
    api.tools.register('${tool}', () =>
      defineTool({
        name: '${tool}',
        description: 'Greets somebody by name.',
        inputSchema: z.object({ who: z.string() }),
        parallelSafe: true,
        replay: 'safe',
        authority: 'guest',
        execute: async ({ who }) => ({ text: \`\${config.greeting}, \${who}!\` }),
      }),
    );
  },
});
`;
}

function testOf(tool: string): string {
  return `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPluginHarness } from 'parley/testing';
import { plugin } from './index.ts';

test('greets somebody by name', async () => {
  await using parley = await createPluginHarness({ plugin });
  parley.model.calls('${tool}', { who: 'Ann' });
  parley.model.says('Done.');
  const answer = await parley.say('Greet Ann.');
  assert.deepEqual(answer, ['Done.']);
  assert.equal(parley.toolResults().at(-1), 'Hello, Ann!');
});
`;
}

function manifestOf(name: string, kit: string): string {
  return `${JSON.stringify(
    {
      name: `parley-${name}`,
      version: '0.1.0',
      private: true,
      type: 'module',
      exports: './index.ts',
      // Its own Node.js, since the system's may be too old.
      scripts: { test: `"${process.execPath}" --import=${kit} --test` },
    },
    undefined,
    2,
  )}
`;
}

function readmeOf(name: string): string {
  return `# ${name}

A plugin for Parley. \`npm test\` runs its test, \`plugins add <this folder>\` adds it, and after each change
\`plugins check ${name} --accept\` accepts the new files; a running Parley takes them up.

Its settings are \`config\`, beside \`from\` and \`digest\` in \`parley.config.json\`; \`reload\` takes them up:

\`\`\`json
{ "plugins": { "${name}": { "config": { "greeting": "Good morning" } } } }
\`\`\`

See docs/plugins.md of Parley for everything that a plugin can do.
`;
}
