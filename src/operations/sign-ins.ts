import { z } from 'zod';
import type { SignIn } from '../store/sign-ins/sign-ins.ts';
import { operation } from './operation.ts';

export type SignInsDeps = {
  /** The browsers signed in with this access token. */
  readonly signIns: {
    list(): Promise<readonly SignIn[]>;
    /** Ends one sign-in, or all but one; returns the ids of those that ended. */
    end(which: { readonly id: string } | { readonly allBut?: string }): Promise<readonly string[]>;
  };
};

export type SignInLinksDeps = {
  /** Creates links that sign one browser in, once. `by`: the sign-in that requests them. */
  issueLinks(by: string | undefined): SignInLinks;
};

/** `phoneUrl`: for a phone on the same network; absent when none can reach the page. */
export type SignInLinks = Readonly<z.output<typeof links>>;

const links = z.object({ url: z.string(), phoneUrl: z.string().exactOptional() });

/** A link requested by a browser is void once that browser has been signed out. */
export const issueSignInLinks = operation({
  name: 'sign-in-links',
  method: 'POST',
  right: 'owner',
  once: 'secret',
  summary: 'Creates a link that signs one browser in, once, within 15 minutes',
  answer: links,
  run: async ({ issueLinks }: SignInLinksDeps, _, { signIn }) => issueLinks(signIn),
});

export const listSignIns = operation({
  name: 'sign-ins',
  method: 'GET',
  right: 'owner',
  summary: 'Lists the signed-in browsers, most recently seen first',
  answer: z.object({
    signIns: z.array(
      z.object({
        id: z.string(),
        browser: z.string(),
        createdAt: z.int(),
        lastSeenAt: z.int(),
        expiresAt: z.int(),
        isThis: z.boolean(),
      }),
    ),
  }),
  run: async ({ signIns }: SignInsDeps, _, { signIn }) => ({
    signIns: (await signIns.list()).map((one) => ({ ...one, isThis: one.id === signIn })),
  }),
});

export const endSignIns = operation({
  name: 'sign-ins/end',
  method: 'POST',
  right: 'owner',
  summary: 'Ends one sign-in, or all others',
  input: z.union([
    z.strictObject({ id: z.string().min(1).max(100) }),
    z.strictObject({ others: z.literal(true) }),
  ]),
  answer: z.object({
    ended: z.int().describe('How many were ended'),
    ids: z.array(z.string()).readonly(),
  }),
  run: async ({ signIns }: SignInsDeps, form, { signIn }) => {
    const which = 'id' in form ? form : signIn === undefined ? {} : { allBut: signIn };
    const ids = await signIns.end(which);
    return { ended: ids.length, ids };
  },
});
