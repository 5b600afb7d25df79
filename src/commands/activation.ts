/** In a group: when the agent answers. */
import { setActivation } from '../store/delivery/insert-part.ts';
import { adminsInGroups, chatCommand } from './chat-command.ts';

type Activation = 'mention' | 'always';
/** `usage`: the words name neither. */
type Wish = Activation | 'usage';

const texts = {
  mention: 'activationMention',
  always: 'activationAlways',
  usage: 'activationUsage',
  'in-dm': 'activationInDm',
} as const;

export const activation = chatCommand<
  { readonly wish: Wish },
  { readonly wish: Wish | 'in-dm' },
  keyof typeof texts
>({
  name: 'activation',
  usage: 'mention|always',
  menu: 'activationMenu',
  parse: (words) => {
    const wish = words.toLowerCase();
    return { wish: wish === 'mention' || wish === 'always' ? wish : 'usage' };
  },
  right: adminsInGroups,
  load: (_, { envelope }, { wish }) => ({ wish: envelope.chat.kind === 'dm' ? 'in-dm' : wish }),
  apply: async (tx, { conversationKey }, { wish }) => {
    if (wish === 'mention' || wish === 'always') await setActivation(tx, conversationKey, wish);
    return wish;
  },
  say: (said, notices) => notices[texts[said]],
});
