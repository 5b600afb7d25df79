import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../e2e/until.ts';
import { aFolder } from '../support/own-folder.ts';
import { shareOf } from '../support/turn.ts';

const run = promisify(execFile);

/** Installs with npm every third day, as copying 400 MB takes 15 s; otherwise links this project's dependencies. */
async function install(archive: string, home: string): Promise<void> {
  const [isNpmsTurn = false] = shareOf([true], 3);
  if (isNpmsTurn) {
    await run('npm', ['install', '--global', '--prefix', home, '--prefer-offline', archive]);
    return;
  }
  const packages = join(home, 'lib/node_modules');
  await mkdir(join(home, 'bin'));
  await mkdir(packages, { recursive: true });
  await run('tar', ['--extract', '--file', archive, '--directory', packages]);
  await symlink(join(import.meta.dirname, '../../node_modules'), join(packages, 'package/node_modules'));
  await symlink(join(packages, 'package/bin/parley.mjs'), join(home, 'bin/parley'));
}

let home = '';

beforeAll(async () => {
  home = aFolder(afterAll);
  await run('npm', ['pack', '--pack-destination', home]);
  const [archive = ''] = await readdir(home);
  await install(join(home, archive), home);
});

it('installs, starts and serves the package that "npm pack" makes', async () => {
  const parley = join(home, 'bin/parley');
  const env = { PATH: process.env.PATH, HOME: home, PARLEY_DATA_DIR: join(home, 'data'), PARLEY_PORT: '0' };

  const { stdout: version } = await run(parley, ['--version'], { env });
  expect(version).toMatch(/^\d+\.\d+\.\d+ \([0-9a-f]{7,}\)\n$/);

  const { stderr: hint } = await run(parley, ['status'], { env }).catch((error) => error);
  expect(hint).toContain('Start it: parley start');
  const gateway = spawn(parley, ['start'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(gateway, 'exit');
  try {
    let shown = '';
    gateway.stdout.on('data', (chunk) => {
      shown += chunk;
    });
    await until(() => shown.includes('Parley is running.'), { what: 'the start' });
    // Beside the status table, the log has one line to say.
    expect([...shown.matchAll(/"event":"([^"]+)"/g)].map(([, event]) => event)).toEqual(['gateway.started']);
    await until(() => shown.includes('terminal'), { what: 'the status table' });
    expect(shown).toMatch(/chat +parley chat\n/);
    expect(shown).not.toMatch(/npm|\.mjs/);
    const chat = spawn(parley, ['chat'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    chat.stdin.end('hello\n');
    expect(await text(chat.stdout)).toContain('You said: “hello”');
    const link = /http:\S+/.exec(shown)?.[0] ?? '';
    const page = await fetch(new URL('/', link));
    expect(await page.text()).toContain('<title>');
    for (const library of ['preact', 'dagre'])
      expect((await fetch(new URL(`/vendor/${library}.js`, link))).status).toBe(200);
  } finally {
    gateway.kill('SIGTERM');
  }
  expect(await ended).toEqual([0, null]);
  expect(await runLoop(home)).toContain('You said: “hello”');
});

/** One mistake in each of its lines but the imports: a type that can't be found is `any`, and finds none. */
const mistakes = `import { definePlugin, type PluginApi } from 'parley/plugin';
import { createPluginHarness } from 'parley/testing';
import type { Tool } from 'parley/agent';
export const plugin = definePlugin({ id: 'a', setup: (api) => void api.tools.registr });
export const register: number = ({} as PluginApi).routes.register;
export const harness: string = createPluginHarness;
export const tool: Tool = 1;
`;

it('has the types that plugins and their tests need', async () => {
  const project = join(home, 'project');
  const packages = join(home, 'lib/node_modules');
  const [name = ''] = await readdir(packages);
  await mkdir(join(project, 'node_modules'), { recursive: true });
  await symlink(join(packages, name), join(project, 'node_modules/parley'));
  for (const name of ['plugins', 'agent'])
    await cp(join(import.meta.dirname, '../../examples', name), join(project, name), { recursive: true });
  await writeFile(join(project, 'mistakes.ts'), mistakes);
  await writeFile(join(project, 'package.json'), '{ "type": "module" }');
  const own = join(import.meta.dirname, '../../node_modules');
  const compilerOptions = {
    ...{ strict: true, noEmit: true, allowImportingTsExtensions: true, module: 'nodenext', target: 'es2024' },
    ...{ lib: ['es2024', 'esnext.disposable'], types: ['node'], typeRoots: [join(own, '@types')] },
  };
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
  const tsc = ['-p', project, '--checkers', '1'];
  const checked = run(join(own, '.bin/tsc'), tsc).catch(({ stdout }) => ({ stdout }));
  const lines = (await checked).stdout.split('\n').filter((line: string) => /^\S/.test(line));
  expect(lines.map((line: string) => /^(?:.*\/)?(.*?\(\d+)/.exec(line)?.[1])).toEqual(
    [4, 5, 6, 7].map((at) => `mistakes.ts(${at}`),
  );
});

/** Runs the agent loop in a program that has installed the package. */
async function runLoop(home: string): Promise<string> {
  const packages = join(home, 'lib/node_modules');
  const [installed = ''] = await readdir(packages);
  await mkdir(join(home, 'node_modules'));
  await symlink(join(packages, installed), join(home, 'node_modules/parley'));
  const program = `
    import { agentLoop, demoModel, textOf } from 'parley/agent';
    for await (const event of agentLoop('hello', {}, { model: demoModel() }))
      if (event.type === 'agent_end') console.log(textOf(event.messages.at(-1).parts));`;
  await writeFile(join(home, 'program.mjs'), program);
  return (await run(process.execPath, ['program.mjs'], { cwd: home })).stdout;
}
