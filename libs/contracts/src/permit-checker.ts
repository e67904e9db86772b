import { z } from 'zod';
import { rpc } from './kit/contract.js';

/** Whom a platform is asked about: the sender of a message, and where it was sent. */
export const PermitSubject = z
  .object({
    scene: z.enum(['private', 'group', 'channel']),
    sceneId: z.string().max(200),
    /** A person's id without `user:`; of others the whole principal. */
    userId: z.string().max(200),
    roles: z.array(z.string().max(100)).max(50),
  })
  .meta({ id: 'PermitSubject' });
export type PermitSubject = z.output<typeof PermitSubject>;

/** Of one platform, answered by a program of the installation's own, with the credentials `permit-checker`. Who does not answer grants nothing. */
export const permitChecker = {
  checkPermits: rpc('ambit.rpc.permit-checker.v1.permit.check.{adapter}', {
    summary: 'Which of these permits, as in platform(adapter, permit), a sender has on the adapter’s platform',
    input: z.object({ subject: PermitSubject, permits: z.array(z.string().max(200)).min(1).max(100) }),
    output: z.object({
      held: z.array(z.string().max(200)).max(100),
      /** Nothing else of the subject was looked at, so that whoever is the same in these has the same permits. Without it every sender is asked about. */
      readsOnly: z.array(PermitSubject.keyof()).max(4).optional(),
      keepMs: z.int().min(0).max(300_000).default(0).meta({ description: 'How long the answer may be used again, for the same subject or, with readsOnly, for one that is the same in these' }),
    }),
    timeoutMs: 2_000,
  }),
};
