import type { TextKey } from '../texts/chat-texts.ts';
import { type Asker, anyone, type ChatCommand, chatCommand, noWords } from './chat-command.ts';
import { rightOf } from './plugin-command.ts';

type Line = { readonly name: string; readonly usage: string } & (
  | { readonly menu: TextKey }
  | { readonly does: string }
);

/** Makes `/help` from the other commands in the list. */
export function helpOf(others: readonly ChatCommand[]): ChatCommand {
  const help: ChatCommand = chatCommand<object, readonly Line[], readonly Line[]>({
    name: 'help',
    menu: 'helpMenu',
    parse: noWords('help'),
    right: anyone,
    load: ({ policy }, { envelope, authority }): readonly Line[] => {
      const { chat, sender } = envelope;
      const asker: Asker = { chat: chat.kind, authority, isAdmin: sender.isAdmin };
      const own = [help, ...others]
        .filter(({ isForAll, right }) => isForAll || right(asker) !== 'denied')
        .map(({ name, usage, menu }) => ({ name, usage, menu }));
      const added = (policy.pluginCommands?.list() ?? [])
        .filter(({ part }) => rightOf(part, asker) !== 'denied')
        .map(({ part: { name, usage = '', description } }) => ({ name, usage, does: description }));
      return [...own, ...added];
    },
    apply: async (_tx, _scene, lines) => lines,
    say: (lines, texts) =>
      lines
        .map(({ name, usage, ...line }) => {
          const does = 'does' in line ? line.does : texts[line.menu];
          return `/${name}${usage === '' ? '' : ` ${usage}`}: ${does}`;
        })
        .join('\n'),
  });
  return help;
}
