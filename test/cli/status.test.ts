import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';

/** Runs `parley status` against what listens on a port. */
async function status(port: number) {
  const child = spawn(process.execPath, ['../../bin/parley.mjs', 'status'], {
    cwd: import.meta.dirname,
    env: {
      PATH: process.env.PATH,
      PARLEY_TEST_HOME: '/nowhere',
      PARLEY_PORT: String(port),
      PARLEY_DATA_DIR: '/nowhere',
    },
  });
  const [code, stderr] = await Promise.all([
    new Promise((resolve) => child.once('exit', resolve)),
    text(child.stderr),
  ]);
  return { code, stderr };
}

async function aServer(answer: string) {
  const server = createServer((_request, response) => response.end(answer));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { port, close: () => new Promise((resolve) => server.close(resolve)) };
}

it('says how to start Parley when nothing listens', async () => {
  const { port, close } = await aServer('');
  await close();
  expect(await status(port)).toEqual({
    code: 1,
    stderr: `Parley isn't running at http://127.0.0.1:${port}. Start it: npm start\n`,
  });
});

it.each(['a page of something else', '{"version":1}'])('recognises another program: %s', async (answer) => {
  const { port, close } = await aServer(answer);
  const { code, stderr } = await status(port);
  await close();
  expect(code).toBe(1);
  expect(stderr).toMatch(/^http:\/\/127.0.0.1:\d+ responds .*, but it isn't the gateway of \/nowhere.*\n$/);
});
