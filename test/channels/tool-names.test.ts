/** The names of channels' tools are listed where the channels are, so that they are known before a channel is loaded. */
import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { channel as discord } from '../../channels/discord/index.ts';
import { channel as signal } from '../../channels/signal/index.ts';
import { channel as telegram } from '../../channels/telegram/index.ts';

it.each(['src/main.ts', 'test/e2e/parley-under-test.ts'])(
  'lists in %s the tools that each channel has',
  async (path) => {
    const text = await readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
    for (const { id, tools = [] } of [telegram, discord, signal]) {
      const from = text.indexOf(`channelId('${id}')`);
      const entry = text.slice(from, text.indexOf(`channels/${id}/index.ts`, from));
      const [, listed = ''] = /tools: \[(.*?)\]/s.exec(entry) ?? [];
      expect(from, id).toBeGreaterThan(0);
      expect(
        [...listed.matchAll(/'(\w+)'/g)].map(([, name]) => name),
        id,
      ).toEqual(tools.map(({ name }) => name));
    }
  },
);
