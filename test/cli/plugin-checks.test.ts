import { expect, it } from 'vitest';
import type { PluginDefinition } from '#contracts/plugin.ts';
import { createShellPlugin } from '../../plugins/shell/index.ts';
import { checkPlugins } from '../../src/cli/doctor/plugin-checks.ts';
import { renderStatusTable } from '../../src/cli/start.ts';
import type { Config } from '../../src/config/config.ts';

/** Runs doctor's checks of the shell plugin with these settings and this bubblewrap. */
async function checksOf(shell: object, bwrap?: string) {
  const load = async () => createShellPlugin('linux', bwrap) as PluginDefinition;
  return checkPlugins({ plugins: { shell } } as unknown as Config, [{ id: 'shell', load }]);
}

it('says in doctor whether the sandbox works, and what to install if not', async () => {
  expect(await checksOf({ enabled: true })).toEqual([
    { name: 'plugin shell', result: 'ok', detail: 'a command ran in the sandbox' },
  ]);
  expect(await checksOf({ enabled: true }, 'no-such-program')).toMatchObject([
    { name: 'plugin shell', result: 'failed', fix: 'install it: apt-get install bubblewrap' },
  ]);
  expect(await checksOf({ enabled: true, unsandboxed: true })).toMatchObject([{ result: 'warning' }]);
});

it('says nothing in doctor of a plugin that is off or has invalid settings', async () => {
  expect(await checksOf({})).toEqual([]);
  expect(await checksOf({ enabled: 'yes' })).toEqual([]);
});

it('shows in the status table why a plugin is off', () => {
  const finding = { result: 'failed', detail: "bubblewrap isn't installed", fix: 'install it' } as const;
  const table = renderStatusTable(
    {
      model: { name: 'm', isDemo: false },
      channels: () => [],
      waiting: () => undefined,
      plugins: () => [
        { kind: 'loaded', plugin: 'shell', finding },
        { kind: 'loaded', plugin: 'fine', finding: { result: 'ok', detail: 'it works' } },
      ],
    },
    { signInLink: undefined, settings: 'none' },
  );
  expect(table).toMatch(/plugin shell +bubblewrap isn't installed; install it\n/);
  expect(table).not.toContain('fine');
});
