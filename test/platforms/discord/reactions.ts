import type { World } from './world.ts';

const emoji = /^\p{RGI_Emoji}$/v;

/**
 * Returns the emoji in a path: itself, or `name:id` for a guild's own, which some clients write `:name:id` or
 * `a:name:id`.
 */
export const readEmoji = (given: string): string => given.replace(/^a?:(?=\w+:\d+$)/, '');

/** Says whether the emoji is known; emoji may come with or without their variation selector. */
export function isKnownEmoji(world: World, key: string): boolean {
  const id = /^\w+:(\d+)$/.exec(key)?.[1];
  if (id !== undefined) return [...world.guilds.values()].some((guild) => guild.emojis.has(id));
  return emoji.test(key) || emoji.test(`${key}\ufe0f`);
}
