import { describe, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { mention } from '../platforms/discord/people.ts';
import { countTold, findBreaches, untilAtRest } from './conservation.ts';
import type { DiscordSide } from './discord-side.ts';
import { openStage, type Stage } from './stage.ts';

type Opened = { readonly stage: Stage; readonly discord: DiscordSide };

async function openDiscord(
  atEnd: (end: () => Promise<void>) => void,
  config: Readonly<Record<string, unknown>> = {},
): Promise<Opened> {
  const stage = await openStage(config, ['discord']);
  atEnd(() => stage.close());
  if (stage.discord === undefined) throw new Error('the stage has no Discord');
  return { stage, discord: stage.discord };
}

describe.concurrent('a direct message on Discord', { timeout: 60_000 }, () => {
  test('is shown as being answered, and answered once with its styles, pinging nobody', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, discord } = await openDiscord(onTestFinished);
    await stage.start();
    const { server } = discord;
    const ada = discord.user(501);
    const gate = createGate();
    stage.model.script([{ text: `**@everyone**, 2 * 3 = 6, ${mention(ada)}.`, hold: { gate } }]);
    const { channelId } = server.people.sends({ from: ada, text: 'Hello?' });
    await gate.reached;
    await server.waitFor(() => server.typing.length > 0);
    gate.open();
    await untilAtRest(stage.dataDir, 1);
    const texts = server.botMessages(channelId).map(({ text }) => text);
    expect(texts).toEqual([`**\\@everyone**, 2 \\* 3 = 6, \\${mention(ada)}.`]);
    expect(countTold(stage.dataDir, ['Hello?'])).toEqual([1]);
    expect(findBreaches(stage.dataDir)).toEqual([]);
    expect([server.refusals, server.pings]).toEqual([[], []]);
  });
});
