PRAGMA application_id = 0;
PRAGMA user_version = 0;
BEGIN TRANSACTION;
CREATE TABLE batches (
	name VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	PRIMARY KEY (name, campaign)
);
INSERT INTO "batches" VALUES('20210301T000000Z-000001-26ea0edfd3d2aa5b','words',1,'26ea0edfd3d2aa5b','20210301T000000Z','made');
INSERT INTO "batches" VALUES('20210303T000000Z-000001-26ea0edfd3d2aa5b','words',1,'26ea0edfd3d2aa5b','20210303T000000Z','made');
INSERT INTO "batches" VALUES('20210307T000000Z-000001-26ea0edfd3d2aa5b','words',1,'26ea0edfd3d2aa5b','20210307T000000Z','made');
CREATE TABLE deleted (
	campaign VARCHAR NOT NULL, 
	folder VARCHAR NOT NULL, 
	batch VARCHAR NOT NULL, 
	complete BOOLEAN NOT NULL, 
	PRIMARY KEY (campaign, folder, batch)
);
CREATE TABLE hops (
	campaign VARCHAR NOT NULL, 
	batch VARCHAR NOT NULL, 
	hop VARCHAR NOT NULL, 
	counts TEXT NOT NULL, 
	folder VARCHAR, 
	finished_at VARCHAR NOT NULL, 
	PRIMARY KEY (campaign, batch, hop)
);
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-26ea0edfd3d2aa5b','shuffle','{"accepted": 201, "hop": "shuffle", "received": 201, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}, "reports": {"accepted": 129, "received": 129, "rejected": {}}}}',NULL,'2026-11-23T11:43:54+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-26ea0edfd3d2aa5b','release','{"accepted": 72, "hop": "release", "opening": {"lanes": 0, "libsodium": 72, "rescued": 0}, "received": 72, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}}}',NULL,'2026-11-23T11:43:55+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-26ea0edfd3d2aa5b','discover','{"accepted": 72, "hop": "discover", "received": 72, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}}}',NULL,'2026-11-23T11:43:56+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-26ea0edfd3d2aa5b','analyze','{"accepted": 78, "hop": "analyze", "opening": {"lanes": 0, "libsodium": 129, "rescued": 0}, "received": 129, "rejected": {"wrong_campaign": 51}, "streams": {"reports": {"accepted": 78, "received": 129, "rejected": {"wrong_campaign": 51}}}}',NULL,'2026-11-23T11:43:58+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-26ea0edfd3d2aa5b','shuffle','{"accepted": 60, "hop": "shuffle", "received": 60, "rejected": {}, "streams": {"reports": {"accepted": 60, "received": 60, "rejected": {}}}}',NULL,'2026-11-23T11:43:59+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-26ea0edfd3d2aa5b','release','{"accepted": 0, "hop": "release", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T11:43:59+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-26ea0edfd3d2aa5b','discover','{"accepted": 0, "hop": "discover", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T11:43:59+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-26ea0edfd3d2aa5b','analyze','{"accepted": 60, "hop": "analyze", "opening": {"lanes": 0, "libsodium": 60, "rescued": 0}, "received": 60, "rejected": {}, "streams": {"reports": {"accepted": 60, "received": 60, "rejected": {}}}}',NULL,'2026-11-23T11:43:59+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-26ea0edfd3d2aa5b','shuffle','{"accepted": 54, "hop": "shuffle", "received": 54, "rejected": {}, "streams": {"reports": {"accepted": 54, "received": 54, "rejected": {}}}}',NULL,'2026-11-23T11:44:01+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-26ea0edfd3d2aa5b','release','{"accepted": 0, "hop": "release", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T11:44:01+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-26ea0edfd3d2aa5b','discover','{"accepted": 0, "hop": "discover", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T11:44:01+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-26ea0edfd3d2aa5b','analyze','{"accepted": 0, "hop": "analyze", "opening": {"lanes": 0, "libsodium": 54, "rescued": 0}, "received": 54, "rejected": {"below_minimum": 3, "wrong_campaign": 51}, "streams": {"reports": {"accepted": 0, "received": 54, "rejected": {"below_minimum": 3, "wrong_campaign": 51}}}}',NULL,'2026-11-23T11:44:02+00:00');
CREATE TABLE hushcount_state (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "hushcount_state" VALUES(4);
CREATE TABLE manifests (
	path VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	seconds INTEGER NOT NULL, 
	collector VARCHAR NOT NULL, 
	authentication VARCHAR NOT NULL, 
	refused TEXT NOT NULL, 
	damaged INTEGER NOT NULL, 
	PRIMARY KEY (path)
);
INSERT INTO "manifests" VALUES('words/000001-26ea0edfd3d2aa5b/20210301T000000Z/one.manifest.json','words',1,'26ea0edfd3d2aa5b','20210301T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-26ea0edfd3d2aa5b/20210301T000000Z/two.manifest.json','words',1,'26ea0edfd3d2aa5b','20210301T000000Z',86400,'two','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-26ea0edfd3d2aa5b/20210302T000000Z/one.manifest.json','words',1,'26ea0edfd3d2aa5b','20210302T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-26ea0edfd3d2aa5b/20210303T000000Z/one.manifest.json','words',1,'26ea0edfd3d2aa5b','20210303T000000Z',86400,'one','none','{}',0);
INSERT INTO "manifests" VALUES('words/000001-26ea0edfd3d2aa5b/20210307T000000Z/one.manifest.json','words',1,'26ea0edfd3d2aa5b','20210307T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-26ea0edfd3d2aa5b/20210311T000000Z/one.manifest.json','words',1,'26ea0edfd3d2aa5b','20210311T000000Z',86400,'one','client-token','{}',0);
CREATE TABLE runs (
	token BIGINT NOT NULL, 
	owner VARCHAR NOT NULL, 
	at VARCHAR
);
INSERT INTO "runs" VALUES(1,'5bbf635c83c22dce','2026-11-23T11:43:52.693472+00:00');
CREATE TABLE segments (
	path VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	stream VARCHAR NOT NULL, 
	records BIGINT NOT NULL, 
	bytes BIGINT NOT NULL, 
	digest VARCHAR NOT NULL, 
	authentication VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	batch VARCHAR, 
	reason VARCHAR, 
	PRIMARY KEY (path)
);
INSERT INTO "segments" VALUES('words/000001-26ea0edfd3d2aa5b/20210301T000000Z/reports/one-000000.blocks','words',1,'26ea0edfd3d2aa5b','20210301T000000Z','reports',72,7696,'a7d12bd6232633b65f0330f5ebad8727a817e031d53d23cbf6e70020a5d3ca0a','client-token','batched','20210301T000000Z-000001-26ea0edfd3d2aa5b',NULL);
INSERT INTO "segments" VALUES('words/000001-26ea0edfd3d2aa5b/20210301T000000Z/discovery/one-000000.blocks','words',1,'26ea0edfd3d2aa5b','20210301T000000Z','discovery',72,15832,'1fb17f6e2f3edfbbba4f64edaf86d0b80143b87bbadc2e6f19e3417c0773d080','client-token','batched','20210301T000000Z-000001-26ea0edfd3d2aa5b',NULL);
INSERT INTO "segments" VALUES('words/000001-26ea0edfd3d2aa5b/20210301T000000Z/reports/two-000000.blocks','words',1,'26ea0edfd3d2aa5b','20210301T000000Z','reports',57,6121,'5388730906a032a9900bea85465e0a5516e7b0b378cad3e2f2b7dcdd0c7839a4','client-token','batched','20210301T000000Z-000001-26ea0edfd3d2aa5b',NULL);
INSERT INTO "segments" VALUES('words/000001-26ea0edfd3d2aa5b/20210302T000000Z/reports/one-000000.blocks','words',1,'26ea0edfd3d2aa5b','20210302T000000Z','reports',9,1081,'c6fddeadb7bbef6ebe6c47796f2dd3990472d2738654cdbfc30ff3d7194956ba','client-token','batched','20210303T000000Z-000001-26ea0edfd3d2aa5b',NULL);
INSERT INTO "segments" VALUES('words/000001-26ea0edfd3d2aa5b/20210302T000000Z/discovery/one-000000.blocks','words',1,'26ea0edfd3d2aa5b','20210302T000000Z','discovery',9,2098,'d96c45a4aa6d75cccade5a01a760124f542985eb72d84e1674d262be84994483','client-token','too_late',NULL,'grace ended before 20210307T000000Z closed');
INSERT INTO "segments" VALUES('words/000001-26ea0edfd3d2aa5b/20210303T000000Z/reports/one-000000.blocks','words',1,'26ea0edfd3d2aa5b','20210303T000000Z','reports',51,5491,'69514e2f84623c13677ea0d72f2fc15009a2e8cf08c539e9c33061d0c89db9fd','none','batched','20210303T000000Z-000001-26ea0edfd3d2aa5b',NULL);
INSERT INTO "segments" VALUES('words/000001-26ea0edfd3d2aa5b/20210307T000000Z/reports/one-000000.blocks','words',1,'26ea0edfd3d2aa5b','20210307T000000Z','reports',54,5806,'8ea66066aaf630130c7d5ce80b4173918e5d328d8e41e95632524d6ecbf748a0','client-token','batched','20210307T000000Z-000001-26ea0edfd3d2aa5b',NULL);
INSERT INTO "segments" VALUES('words/000001-26ea0edfd3d2aa5b/20210311T000000Z/reports/one-000000.blocks','words',1,'26ea0edfd3d2aa5b','20210311T000000Z','reports',12,1396,'c9f75049a315d0c43702a3da2393cf947c0ce6cfe36c1e7739131c208a46f960','client-token','too_late',NULL,'grace ended, and no window closed');
CREATE TABLE windows (
	campaign VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	closed_at VARCHAR NOT NULL, 
	seconds INTEGER NOT NULL, 
	PRIMARY KEY (campaign, window)
);
INSERT INTO "windows" VALUES('words','20210301T000000Z','2026-11-23T11:43:52.693472+00:00',86400);
INSERT INTO "windows" VALUES('words','20210302T000000Z','2026-11-23T11:43:52.693472+00:00',86400);
INSERT INTO "windows" VALUES('words','20210303T000000Z','2026-11-23T11:43:52.693472+00:00',86400);
INSERT INTO "windows" VALUES('words','20210307T000000Z','2026-11-23T11:43:52.693472+00:00',86400);
INSERT INTO "windows" VALUES('words','20210311T000000Z','2026-11-23T11:43:52.693472+00:00',86400);
COMMIT;
