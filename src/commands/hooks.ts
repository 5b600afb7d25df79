import type { HookState } from '#contracts/hook.ts';
import { type ChatTexts, fillText, type TextKey } from '../texts/chat-texts.ts';
import { chatCommand, noWords } from './chat-command.ts';

type Facts = { readonly hooks: readonly HookState[] };

const maxListed = 30;

const words: Readonly<Record<HookState['state'], TextKey>> = {
  active: 'hooksActive',
  suspended: 'hooksSuspended',
  off: 'hooksOff',
};

/** `/hooks`: shows owners which hooks are active, and how often each failed. */
export const hooks = chatCommand<Record<never, never>, Facts, Facts>({
  name: 'hooks',
  menu: 'hooksMenu',
  denial: 'hooksDenied',
  parse: noWords('hooks'),
  right: ({ authority }) => (authority === 'owner' ? 'allowed' : 'denied'),
  load: (deps) => ({ hooks: deps.hooks() }),
  apply: async (_tx, _scene, input) => input,
  say: ({ hooks: all }, texts) => {
    if (all.length === 0) return texts.hooksNone;
    const lines = all.slice(0, maxListed).map((hook) => lineOf(hook, texts));
    const count = all.length - lines.length;
    return [...lines, ...(count > 0 ? [fillText(texts.itemsMore, { count })] : [])].join('\n');
  },
});

function lineOf({ event, owner, state, calls, failures }: HookState, texts: ChatTexts): string {
  return fillText(texts.hooksLine, { event, owner, calls, failures, state: texts[words[state]] });
}
