import { setActivation } from '../store/delivery/insert-part.ts';
import { adminsInGroups, asRequested, chatCommand } from './chat-command.ts';

type Activation = 'mention' | 'always';

export const activation = chatCommand({
  name: 'activation',
  usage: 'mention|always',
  menu: 'activationMenu',
  parse: (words): { readonly value: Activation } | { readonly problem: 'activationUsage' } => {
    const value = words.toLowerCase();
    return value === 'mention' || value === 'always' ? { value } : { problem: 'activationUsage' };
  },
  right: adminsInGroups,
  load: asRequested,
  apply: async (tx, { conversationKey }, { value }) => {
    await setActivation(tx, conversationKey, value);
    return value;
  },
  say: (value, texts) => (value === 'always' ? texts.activationAlways : texts.activationMention),
});
