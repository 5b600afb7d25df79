/** The sources of a search model's answer, as Markdown below it. */
import type { Source } from '#contracts/message.ts';

/** Returns the text with its sources, numbered as the text refers to them. They aren't repeated if it links them all. */
export function withSources(text: string, sources: readonly Source[]): string {
  if (sources.every(({ url }) => text.includes(url))) return text;
  const lines = sources.map(({ url, title }, index) => `${index + 1}. ${linkTo(url, title)}`);
  return `${text}\n\nSources:\n${lines.join('\n')}`;
}

function linkTo(url: string, title: string | undefined): string {
  const words = title?.replace(/[[\]\\`*_<>\s]+/g, ' ').trim();
  return words ? `[${words}](${url})` : url;
}
