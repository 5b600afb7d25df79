import type { Problem } from './chat-command.ts';

/** Parsed words of `/subagents …`. `which`: the beginning of an id, as shown in the list. */
export type SubagentsRequest =
  | { readonly kind: 'list' }
  | { readonly kind: 'info' | 'log' | 'stop'; readonly which: string }
  | { readonly kind: 'steer'; readonly which: string; readonly text: string };

/** Parses the words after `/subagents`: nothing, `list`, `info x`, `log x`, `stop x`, or `steer x the new words`. */
export function parseSubagentsRequest(words: string): SubagentsRequest | Problem {
  const [, verb = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(words.trim()) ?? [];
  const [, which = '', text = ''] = /^#?([a-z2-7]{2,16})(?:\s+([\s\S]+))?$/i.exec(rest) ?? [];
  const kind = verb.toLowerCase();
  const id = which.toLowerCase();
  switch (kind) {
    case '':
      return { kind: 'list' };
    case 'list':
      return rest === ''
        ? { kind: 'list' }
        : { problem: 'commandAlone', values: { command: '/subagents list' } };
    case 'info':
    case 'log':
    case 'stop':
      return id !== '' && text === ''
        ? { kind, which: id }
        : { problem: 'childUsage', values: { verb: kind } };
    case 'steer':
      return id !== '' && text !== '' ? { kind, which: id, text } : { problem: 'childSteerUsage' };
    default:
      return { problem: 'childUnknownVerb', values: { verb } };
  }
}
