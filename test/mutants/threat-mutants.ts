import type { Mutant } from './mutants.ts';

const attachments = { file: 'test/threats/attachments.test.ts', name: 'keeps memory, other chats' };

/** Broken variants of the defenses against hostile files, orders and ports. */
export const threatMutants: readonly Mutant[] = [
  {
    name: 'a file under its sender’s name',
    invariant: 'what is stored has a name that Parley made',
    edit: {
      in: 'fetchOne',
      find: 'const path = newMediaName(inboxId, { isViewOnce: ref.isViewOnce === true });',
      replace: 'const path = name; void inboxId;',
    },
    test: attachments,
  },
  {
    name: 'images of any size shown',
    invariant: 'no model is shown an image whose sides are out of bounds',
    edit: {
      in: 'fitImage',
      find: 'found.width <= maxSide && found.height <= maxSide',
      replace: 'maxSide > 0',
    },
    test: attachments,
  },
  {
    name: 'orders obeyed with the rights of nobody in particular',
    invariant: 'a model that obeys others’ words does nothing that who wrote to it may not',
    edit: {
      in: 'askPermission',
      find: 'if (leastTrusted(config.run.authority, tool.authority) !== tool.authority) return denied;',
      replace: '',
    },
    // Tools are also offered by authority.
    also: [
      { in: 'toolsOf', find: '.filter(mayCause)', replace: '.filter((tool) => mayCause(tool) || true)' },
    ],
    test: { file: 'test/e2e/provenance.test.ts', name: 'make a model that obeys them all' },
  },
  {
    name: 'its Redis on a port',
    invariant: 'nothing of Parley listens but the one port that was asked for',
    edit: { in: 'serverArguments', find: "port: '0'", replace: "port: '6399'" },
    test: { file: 'test/e2e/process-health.test.ts', name: 'every process says whether it lives' },
  },
];
