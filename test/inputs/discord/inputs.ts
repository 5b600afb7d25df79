import { cards } from './cards.ts';
import type { DiscordInput } from './discord-input.ts';
import { events } from './events.ts';
import { files } from './files.ts';
import { quotes } from './quotes.ts';
import { words } from './words.ts';

export const inputs: readonly DiscordInput[] = [...words, ...files, ...cards, ...quotes, ...events];
