import { link, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ToolOutput, ToolRun } from '../../src/contracts/tool.ts';
import { createByteBudget } from '../../src/outbox/byte-budget.ts';
import { parseAttached } from '../../src/runs/tool-turns.ts';
import { type AttachFilesDeps, attachFiles } from '../../src/tools/attach-files.ts';
import { aRun } from '../agent/support/builders.ts';
import { exampleCapabilities } from '../channels/example/capabilities.ts';
import { type AWorkspace, aWorkspace } from '../plugins/files/a-workspace.ts';
import { aRoute } from '../replies/reply-builders.ts';
import { anOggOpus } from '../support/ogg-opus.ts';

let files: AWorkspace;

beforeEach(async () => {
  files = await aWorkspace();
  await writeFile(join(files.workspace, 'chart.png'), '\x89PNG\r\n and so on', 'latin1');
  await writeFile(join(files.workspace, 'notes.txt'), 'first');
});

afterEach(() => files.remove());

const maxBytes = 100;

/** Attaches the files of an output as a run does. */
async function attach(
  attached: unknown,
  {
    by = {},
    output = {},
    ...over
  }: Partial<AttachFilesDeps> & { by?: Partial<ToolRun>; output?: Partial<ToolOutput> } = {},
) {
  const mediaDir = join(files.folder, 'media');
  const deps: AttachFilesDeps = {
    ...{ mediaDir, maxFileBytes: 1_000_000, copies: createByteBudget(1_000_000) },
    readerFor: () => files.reader,
    capabilitiesFor: () => ({ ...exampleCapabilities, media: { maxBytes } }),
    ...over,
  };
  const run: ToolRun = { ...aRun, route: aRoute(), authority: 'owner', workspace: files.workspace, ...by };
  // A plugin's tool may return anything.
  const given = { text: 'Drawn.', ...output, files: attached } as ToolOutput;
  const ctx = { callId: 'c', run, signal: new AbortController().signal, update: () => undefined };
  const result = await attachFiles(deps, given, ctx);
  const copies = await readdir(mediaDir).catch(() => []);
  const bytesOf = (name: string) => readFile(join(mediaDir, name), 'utf8');
  return { ...result, reported: parseAttached(result.metadata), copies, bytesOf };
}

describe.runIf(process.platform === 'linux')('files that a result attaches', () => {
  it('copies attached files as they are now and reports them for the answer', async () => {
    const given = [{ path: './notes.txt' }, { path: 'chart.png', name: '../Sales\n2026.png' }];
    const { text, reported, bytesOf, metadata } = await attach(given, { output: { metadata: { rows: 3 } } });
    await writeFile(join(files.workspace, 'notes.txt'), 'second');
    expect(text).toBe('[attached to your next answer: notes.txt, Sales 2026.png]\nDrawn.');
    expect(reported).toMatchObject([
      { name: 'notes.txt', mimeType: 'text/plain', source: join(files.workspace, 'notes.txt') },
      { name: 'Sales 2026.png', mimeType: 'image/png', source: join(files.workspace, 'chart.png') },
    ]);
    expect(metadata).toMatchObject({ rows: 3 });
    expect(await bytesOf(reported[0]?.path ?? '')).toBe('first');
  });

  it('marks Ogg Opus as a voice message if asked to, and says of another file that it is none', async () => {
    await writeFile(join(files.workspace, 'hello.ogg'), anOggOpus([]));
    const given = [
      { path: 'hello.ogg', asVoice: true },
      { path: 'notes.txt', asVoice: true },
    ];
    const { text, reported } = await attach(given);
    expect(reported.map(({ name, asVoice }) => [name, asVoice])).toEqual([
      ['hello.ogg', true],
      ['notes.txt', undefined],
    ]);
    expect(text).toContain("[notes.txt isn't Ogg Opus: sent as a file]");
  });

  it("says of each file why it can't be attached, and attaches the others", async () => {
    await writeFile(join(files.outside, 'secret.txt'), 'secret');
    await link(join(files.outside, 'secret.txt'), join(files.workspace, 'hard.txt'));
    await writeFile(join(files.workspace, 'large.bin'), Buffer.alloc(maxBytes + 1));
    for (const [path, problem] of [
      ['../outside/secret.txt', 'outside the workspace'],
      ['hard.txt', 'hard links'],
      ['large.bin', 'the limit is 100'],
      ['missing.txt', "doesn't exist"],
    ] as const) {
      const { text, reported } = await attach([{ path }, { path: 'notes.txt' }]);
      expect(text).toMatch(/^\[attached to your next answer: notes.txt\]\n\[not attached: /);
      expect(text).toContain(problem);
      expect(reported.map(({ name }) => name)).toEqual(['notes.txt']);
    }
  });

  it('attaches nothing for a guest, without a conversation, or on a network without files', async () => {
    const { media: _, ...without } = exampleCapabilities;
    const { route: __, ...recorded } = { ...aRun, workspace: files.workspace };
    const nowhere = { ...recorded, route: undefined } as unknown as Partial<ToolRun>;
    for (const [circumstances, problem] of [
      [{ by: { authority: 'guest' } }, 'may not have files read'],
      [{ by: nowhere }, 'goes to no conversation'],
      [{ capabilitiesFor: () => without }, 'takes no files'],
      [{ readerFor: () => undefined }, "can't be read here"],
    ] as const) {
      const { text, copies, metadata } = await attach([{ path: 'notes.txt' }], circumstances);
      expect(text).toContain(problem);
      expect(copies).toEqual([]);
      expect(metadata).toBeUndefined();
    }
  });

  it('attaches at most ten files of one result and survives whatever a plugin lists', async () => {
    const many = Array.from({ length: 12 }, () => ({ path: 'notes.txt' }));
    const { text, reported } = await attach(many);
    expect(reported).toHaveLength(10);
    expect(text).toContain('[not attached: 2 more files]');
    expect((await attach([7, null, { path: 7 }, { path: '' }])).text).toContain('a file without a path');
    expect((await attach('notes.txt')).text).toBe('Drawn.');
  });

  it('accepts no report of files that Parley has not copied', () => {
    const report = (path: string) => ({
      attached: [{ path, source: '/w/a', mimeType: 'text/plain', name: 'a' }],
    });
    for (const path of ['../../etc/passwd', '/etc/passwd', 'item.0123abcd', 'sent-1.0123abcd/../x'])
      expect(parseAttached(report(path)), path).toEqual([]);
    expect(parseAttached(report('sent-1.0123abcd'))).toHaveLength(1);
  });
});
