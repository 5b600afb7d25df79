/** Removes from strangers' text whatever a model could mistake for scaffolding. */
import { stripControls } from './control-characters.ts';

const LONGEST_LABEL = 64;
const DEEPEST_NESTING = 8;

const ROLE_TOKENS =
  /<\|(?:[\w▁-]+|[\w ▁-]{1,40})\|>|<｜(?:[\w▁-]+|[\w ▁-]{1,40})｜>|\[\/?INST\]|<<\/?SYS>>|<\/?(?:\w{1,12}:)?(?:system|assistant|user|human|developer|tool|system-reminder|instructions?|think|thinking|tool_call|tool_result|function_calls?|function_results?|invoke|parameter)\b[^<>]{0,200}>/gi;

/** Removes controls, role tokens and imitated boundaries from a stranger's text. Safe to repeat. */
export function cleanUntrusted(text: string): string {
  let clean = stripControls(text);
  // Removing one token may join two halves of another; text that nests them deeper loses every bracket.
  for (let pass = 0; clean.search(ROLE_TOKENS) !== -1; pass += 1) {
    clean = pass < DEEPEST_NESTING ? clean.replace(ROLE_TOKENS, '') : clean.replace(/[<[]/g, '‹');
  }
  return clean.replace(/[<＜﹤]{3,}/g, '‹‹‹').replace(/[>＞﹥]{3,}/g, '›››');
}

/** Cleans the name of a person or a file: one short line without anything that could end a label. */
export function cleanLabel(name: string): string {
  const label = cleanUntrusted(name)
    .replace(/[\s\u00b7]+/g, ' ')
    .replace(/[[\]<>"]/g, '')
    .trim();
  const characters = [...label];
  return characters.length > LONGEST_LABEL ? `${characters.slice(0, LONGEST_LABEL - 1).join('')}…` : label;
}
