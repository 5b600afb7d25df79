import { startSession } from '../store/lanes/new-session.ts';
import { adminsInGroups, asRequested, type ChatCommand, chatCommand, noWords } from './chat-command.ts';

/** Makes `/new`, under any name. */
export function newSession(name: string): ChatCommand {
  return chatCommand({
    name,
    menu: 'newMenu',
    order: 'lane',
    abortsRun: true,
    parse: noWords(name),
    right: adminsInGroups,
    load: asRequested,
    apply: async (tx, scene) =>
      startSession(tx, await scene.lane(), { seq: scene.number, effects: scene.effects }),
    say: (_, texts) => texts.newSession,
  });
}

export const fresh = newSession('new');
