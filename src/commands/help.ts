import type { TextKey } from '../texts/chat-texts.ts';
import { type Asker, anyone, type ChatCommand, chatCommand, noWords } from './chat-command.ts';

type Line = { readonly name: string; readonly usage: string; readonly menu: TextKey };

/** Makes `/help` from the other commands in the list. */
export function helpOf(others: readonly ChatCommand[]): ChatCommand {
  const help: ChatCommand = chatCommand<object, readonly Line[], readonly Line[]>({
    name: 'help',
    menu: 'helpMenu',
    parse: noWords('help'),
    right: anyone,
    load: (_, { envelope, authority }): readonly Line[] => {
      const { chat, sender } = envelope;
      const asker: Asker = { chat: chat.kind, authority, isAdmin: sender.isAdmin };
      return [help, ...others]
        .filter(({ isForAll, right }) => isForAll || right(asker) !== 'denied')
        .map(({ name, usage, menu }) => ({ name, usage, menu }));
    },
    apply: async (_tx, _scene, lines) => lines,
    say: (lines, texts) =>
      lines
        .map(({ name, usage, menu }) => `/${name}${usage === '' ? '' : ` ${usage}`}: ${texts[menu]}`)
        .join('\n'),
  });
  return help;
}
