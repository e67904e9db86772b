import { pattern, permitChecker, reviewer, serviceInboxPrefix, services, type Contract, type ServiceUse } from '@ambit/contracts';
import type { Permissions } from './claims.js';
import { allPermissions, servicePermissions } from './service-permissions.js';

/** Every contract that the services page names, once each. */
export function allContracts(): readonly Contract[] {
  const uses: readonly ServiceUse[] = Object.values(services);
  return [
    ...new Set(
      uses.flatMap((use): readonly Contract[] => [
        ...use.answers,
        ...use.calls,
        ...use.emits,
        ...use.hears,
        ...use.enqueues,
        ...use.works,
        ...use.signals,
        ...use.listens,
        ...use.answersDynamically,
      ]),
    ),
  ];
}

/** Hears what the gateway asks a reviewer, and answers the gateway. */
const reviewerPermissions: Permissions = {
  pub: { allow: [`${serviceInboxPrefix('tool-gateway')}.>`] },
  sub: { allow: [pattern(reviewer.reviewCall), `${serviceInboxPrefix('reviewer')}.>`] },
};

/** Hears what session-service asks about the senders of messages, and answers it. */
const permitCheckerPermissions: Permissions = {
  pub: { allow: [`${serviceInboxPrefix('session-service')}.>`] },
  sub: { allow: [pattern(permitChecker.checkPermits), `${serviceInboxPrefix('permit-checker')}.>`] },
};

/**
 * Credentials that an installation has: one per service; `init`, which may do anything in the services' account; and `reviewer` and `permit-checker`, for
 * programs of the installation's own that rate calls and know who may do what on a platform.
 */
export function installationUsers(): ReadonlyMap<string, Permissions> {
  const users = new Map<string, Permissions>([
    ['init', allPermissions],
    ['reviewer', reviewerPermissions],
    ['permit-checker', permitCheckerPermissions],
  ]);
  for (const [name, use] of Object.entries<ServiceUse>(services)) users.set(name, servicePermissions(name, use));
  return users;
}
