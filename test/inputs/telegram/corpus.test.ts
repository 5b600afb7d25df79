/** Updates in the shapes that Telegram really sends, each with how Parley reads it. */
import { describe, expect, it } from 'vitest';
import { botOf } from '../../../channels/telegram/ids.ts';
import { readUpdate } from '../../../channels/telegram/inbound.ts';
import { summarize } from '../read-input.ts';
import { events } from './events.ts';
import { lines } from './lines.ts';
import { media } from './media.ts';
import { quotes } from './quotes.ts';
import { richMessages } from './rich.ts';
import type { TelegramInput } from './telegram-input.ts';
import { words } from './words.ts';

const bot = botOf({ id: 700, username: 'ParleyBot' });
const inputs: readonly TelegramInput[] = [
  ...words,
  ...richMessages,
  ...media,
  ...lines,
  ...quotes,
  ...events,
];

describe('an update of Telegram', () => {
  it.each(inputs.map((input) => [input.name, input] as const))(
    'reads a Telegram update as what it is: %s',
    (_, { update, read }) => {
      const { refused, ...rest } = read;
      const [envelope] = readUpdate(update, bot, 1_800_000_000_000);
      if (envelope === undefined) throw new Error('nothing was read');
      expect(summarize(envelope.event)).toEqual({
        ...rest,
        ...(refused !== undefined && { refused: expect.stringMatching(`^${refused}`) }),
      });
    },
  );
});
