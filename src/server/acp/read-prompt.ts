/**
 * Reads what an editor sends with a prompt. What a person typed is their message; files and selections that the editor
 * adds are data.
 */
import type { ContentBlock } from '@agentclientprotocol/sdk';
import { newDelimiter, wrapUntrusted } from '../../texts/untrusted-text.ts';

export type EditorPrompt = {
  /** The message as people see it: files are only named. */
  readonly text: string;
  /** The message as the model reads it. */
  readonly prompt: string;
  readonly images: readonly Buffer[];
};

/** Returns a sentence about what can't be read. */
export function readPrompt(blocks: readonly ContentBlock[]): EditorPrompt | string {
  const shown: string[] = [];
  const read: string[] = [];
  const images: Buffer[] = [];
  const add = (text: string, forModel = text) => {
    shown.push(text);
    read.push(forModel);
  };
  for (const block of blocks) {
    if (block.type === 'audio') return 'Audio can’t be read; this agent takes text and images.';
    if (block.type === 'text') add(block.text);
    if (block.type === 'image') images.push(Buffer.from(block.data, 'base64'));
    if (block.type === 'resource_link') add(`[${block.name}](${block.uri})`);
    if (block.type !== 'resource') continue;
    const { resource } = block;
    if (!('text' in resource)) return `${resource.uri} isn’t text; attach an image as an image.`;
    add(`[${resource.uri}]`, wrapUntrusted(resource.text, `file ${resource.uri}`, newDelimiter()));
  }
  const text = shown.join('\n').trim();
  if (text === '' && images.length === 0) return 'The prompt is empty.';
  return { text, prompt: read.join('\n').trim(), images };
}
