import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { accessToken } from '../../src/server/access-token.ts';
import { aFolder } from '../support/own-folder.ts';

let dataDir = '';
const file = () => join(dataDir, 'token');
beforeEach(async () => {
  dataDir = aFolder();
});

describe("the owner's token", () => {
  it('creates a token of 256 bits once, readable by its owner only', async () => {
    const token = await accessToken(dataDir);
    expect(Buffer.from(token, 'base64url')).toHaveLength(32);
    expect(await accessToken(dataDir)).toBe(token);
    expect((await stat(file())).mode & 0o777).toBe(0o600);
  });

  it('creates one token for all processes that start at once', async () => {
    const tokens = await Promise.all(Array.from({ length: 8 }, () => accessToken(dataDir)));
    expect(new Set(tokens).size).toBe(1);
  });

  it('creates another token if a crash left half of one or none', async () => {
    for (const left of ['', '\n', 'AAAA']) {
      await writeFile(file(), left);
      const token = await accessToken(dataDir);
      expect(Buffer.from(token, 'base64url')).toHaveLength(32);
      expect((await readFile(file(), 'utf8')).trim()).toBe(token);
    }
  });

  it('leaves no other file beside the token', async () => {
    await accessToken(dataDir);
    expect(await readdir(dataDir)).toEqual(['token']);
  });
});
