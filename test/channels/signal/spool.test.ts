import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { Spool, type SpoolEntry } from '../../../channels/signal/spool.ts';
import { aFolder } from '../../support/own-folder.ts';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = aFolder();
  path = join(folder, 'spool.jsonl');
});

const open = async (maxBytes = 10_000_000) => {
  const spool = new Spool(folder, maxBytes);
  await spool.look();
  return spool;
};
const entry = (at: number, raw = `{"n":${at}}`): SpoolEntry => ({ at, raw });

/** Takes everything out, page by page. */
async function drain(spool: Spool): Promise<readonly SpoolEntry[]> {
  const taken: SpoolEntry[] = [];
  for (let page = await spool.peek(); page !== undefined; page = await spool.peek()) {
    taken.push(...page.entries);
    await spool.consume(page.end);
  }
  return taken;
}

describe('the contents of the spool', () => {
  it('returns entries in order, whatever they are, and removes the empty file', async () => {
    const texts = fc.array(
      fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.constant('a\nb\r\n"\\')),
      {
        maxLength: 70,
      },
    );
    await fc.assert(
      fc.asyncProperty(texts, async (raws) => {
        const spool = await open();
        await Promise.all(raws.map((raw, at) => spool.append(entry(at, raw))));
        expect(await drain(spool)).toEqual(raws.map((raw, at) => entry(at, raw)));
        expect(spool.isEmpty).toBe(true);
        expect(await readdir(folder)).toEqual([]);
      }),
      { numRuns: 15 },
    );
  });

  it('keeps unread entries for the next process', async () => {
    const spool = await open();
    for (let at = 0; at < 70; at += 1) await spool.append(entry(at));
    const first = await spool.peek();
    expect(first?.entries).toHaveLength(50);
    await spool.consume(first?.end ?? 0);
    await spool.append(entry(70));
    expect((await spool.peek())?.entries.map(({ at }) => at)).toEqual(
      [...Array(20).keys()].map((n) => n + 50),
    );

    // Everything comes once more; the store recognizes by its key what it already has.
    expect((await drain(await open())).map(({ at }) => at)).toEqual([...Array(71).keys()]);
  });

  it('reads a spool that is larger than one read', async () => {
    const spool = await open();
    const big = 'x'.repeat(900_000);
    await spool.append(entry(1, big));
    await spool.append(entry(2));
    expect((await drain(await open())).map(({ at, raw }) => [at, raw.length])).toEqual([
      [1, 900_000],
      [2, 7],
    ]);
  });

  it("keeps the file readable by its process's user only", async () => {
    await (await open()).append(entry(1));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });
});

describe('damaged files', () => {
  it('drops a line that a crash cut off and keeps the others', async () => {
    await (await open()).append(entry(1));
    await appendFile(path, '{"at":2,"raw":"half a l');
    const spool = await open();
    await spool.append(entry(3));
    expect((await drain(spool)).map(({ at }) => at)).toEqual([1, 3]);
  });

  it('returns lines that are not its own', async () => {
    await writeFile(path, 'not json\n{"at":5,"raw":"ok"}\n');
    expect(await drain(await open())).toEqual([
      { at: 0, raw: 'not json' },
      { at: 5, raw: 'ok' },
    ]);
  });
});

describe('several processes in one folder', () => {
  it('loses no entry of concurrent writers and keeps the order of each', async () => {
    const [reader, ...writers] = await Promise.all(Array.from({ length: 4 }, () => open(50_000_000)));
    const put = [...Array(12).keys()];
    // Long enough for the file to be read and removed while a line is being written.
    const long = 'x'.repeat(800_000);
    let isPut = false;
    const putting = Promise.all(
      writers.map(async (spool, index) => {
        for (const at of put) await spool.append(entry(at, `${index}${at % 3 === 0 ? long : ''}`));
      }),
    ).then(() => {
      isPut = true;
    });
    const taken: SpoolEntry[] = [];
    for (let isLast = false; !isLast && reader !== undefined; ) {
      isLast = isPut;
      taken.push(...(await drain(reader)));
    }
    await putting;
    for (const index of writers.keys()) {
      const all = taken.filter(({ raw }) => raw.startsWith(String(index))).map(({ at }) => at);
      // Duplicates are harmless, because the store knows each event by its key.
      expect([...new Set(all)]).toEqual(put);
    }
  });

  it('finds the entries of another process', async () => {
    const [one, other] = [await open(), await open()];
    await one.append(entry(1));
    expect(other.isEmpty).toBe(true);
    await other.look();
    expect(other.isEmpty).toBe(false);
    expect((await drain(other)).map(({ at }) => at)).toEqual([1]);
  });
});

describe('the limit', () => {
  it('refuses entries beyond its limit and keeps the others', async () => {
    const spool = await open(60);
    await spool.append(entry(1));
    await spool.append(entry(2));
    await expect(spool.append(entry(3))).rejects.toMatchObject({ code: 'store_full' });
    expect((await readFile(path, 'utf8')).split('\n')).toHaveLength(3);
    await drain(spool);
    await spool.append(entry(3));
    expect((await drain(spool)).map(({ at }) => at)).toEqual([3]);
  });
});

describe('kill -9', () => {
  it('loses no entry that was confirmed before kill -9, and keeps their order', {
    timeout: 300_000,
  }, async () => {
    for (const enough of [1, 40, 300]) {
      const writer = spawn(process.execPath, [join(import.meta.dirname, 'spool-writer.ts'), folder], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let said = '';
      writer.stdout.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        if (said.split('\n').length > enough) writer.kill('SIGKILL');
      });
      await once(writer, 'close');
      const safe = said.trim().split('\n').filter(Boolean).map(Number);
      expect(safe.length).toBeGreaterThanOrEqual(enough);
      const kept = (await drain(await open())).map(({ at }) => at);
      expect(kept.slice(0, safe.length)).toEqual(safe);
      // At most one number was safe and not yet reported.
      expect(kept.length - safe.length).toBeLessThanOrEqual(1);
    }
  });
});
