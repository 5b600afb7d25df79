/** An independent check of OpenAI-compatible addresses, against a running gateway. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'vitest';
import { aFolder } from '../support/own-folder.ts';
import { describeRow } from './describe-row.ts';
import { startParley } from './parley-process.ts';

type Report = {
  readonly results: readonly {
    readonly id: string;
    readonly status: string;
    readonly error?: { readonly responseBody?: string };
  }[];
};

describeRow('compatcanary', (atEnd) => {
  test('finds nothing missing but tools of the caller and JSON formats, which Parley refuses', async ({
    expect,
  }) => {
    const dataDir = aFolder(atEnd);
    const parley = await startParley({ dataDir, env: {} });
    atEnd(() => parley.kill());
    const token = (await readFile(join(dataDir, 'token'), 'utf8')).trim();
    const manifest = createRequire(import.meta.url).resolve('compatcanary');
    const options = ['--model', 'main', '--format', 'json', '--fail-on', 'never'];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(manifest, '..', 'cli.js'), 'scan', '--base-url', `${parley.url}/v1`, ...options],
      { env: { PATH: process.env.PATH, OPENAI_API_KEY: token } },
    );
    const { results } = JSON.parse(stdout) as Report;
    expect(results.map(({ id, status }) => [id, status])).toEqual([
      ['models.list', 'pass'],
      ['chat.basic', 'pass'],
      ['chat.streaming', 'pass'],
      ['chat.tool_call', 'fail'],
      ['chat.structured_output', 'fail'],
      ['responses.basic', 'pass'],
      ['responses.streaming', 'pass'],
    ]);
    for (const { status, error } of results)
      if (status === 'fail') expect(error?.responseBody).toContain('"code":"unsupported_parameter"');
  }, 60_000);
});
