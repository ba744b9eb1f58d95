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
INSERT INTO "batches" VALUES('20210301T000000Z-000001-946b1abedf624263','words',1,'946b1abedf624263','20210301T000000Z','made');
INSERT INTO "batches" VALUES('20210303T000000Z-000001-946b1abedf624263','words',1,'946b1abedf624263','20210303T000000Z','made');
INSERT INTO "batches" VALUES('20210307T000000Z-000001-946b1abedf624263','words',1,'946b1abedf624263','20210307T000000Z','made');
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
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-946b1abedf624263','shuffle','{"accepted": 201, "hop": "shuffle", "received": 201, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}, "reports": {"accepted": 129, "received": 129, "rejected": {}}}}',NULL,'2026-11-23T06:45:43+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-946b1abedf624263','release','{"accepted": 72, "hop": "release", "opening": {"lanes": 0, "libsodium": 72, "rescued": 0}, "received": 72, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}}}',NULL,'2026-11-23T06:45:44+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-946b1abedf624263','discover','{"accepted": 72, "hop": "discover", "received": 72, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}}}',NULL,'2026-11-23T06:45:44+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-946b1abedf624263','analyze','{"accepted": 78, "hop": "analyze", "opening": {"lanes": 0, "libsodium": 129, "rescued": 0}, "received": 129, "rejected": {"wrong_campaign": 51}, "streams": {"reports": {"accepted": 78, "received": 129, "rejected": {"wrong_campaign": 51}}}}',NULL,'2026-11-23T06:45:45+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-946b1abedf624263','shuffle','{"accepted": 60, "hop": "shuffle", "received": 60, "rejected": {}, "streams": {"reports": {"accepted": 60, "received": 60, "rejected": {}}}}',NULL,'2026-11-23T06:45:45+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-946b1abedf624263','release','{"accepted": 0, "hop": "release", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T06:45:45+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-946b1abedf624263','discover','{"accepted": 0, "hop": "discover", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T06:45:45+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-946b1abedf624263','analyze','{"accepted": 60, "hop": "analyze", "opening": {"lanes": 0, "libsodium": 60, "rescued": 0}, "received": 60, "rejected": {}, "streams": {"reports": {"accepted": 60, "received": 60, "rejected": {}}}}',NULL,'2026-11-23T06:45:46+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-946b1abedf624263','shuffle','{"accepted": 54, "hop": "shuffle", "received": 54, "rejected": {}, "streams": {"reports": {"accepted": 54, "received": 54, "rejected": {}}}}',NULL,'2026-11-23T06:45:46+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-946b1abedf624263','release','{"accepted": 0, "hop": "release", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T06:45:46+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-946b1abedf624263','discover','{"accepted": 0, "hop": "discover", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T06:45:46+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-946b1abedf624263','analyze','{"accepted": 0, "hop": "analyze", "opening": {"lanes": 0, "libsodium": 54, "rescued": 0}, "received": 54, "rejected": {"below_minimum": 3, "wrong_campaign": 51}, "streams": {"reports": {"accepted": 0, "received": 54, "rejected": {"below_minimum": 3, "wrong_campaign": 51}}}}',NULL,'2026-11-23T06:45:47+00:00');
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
INSERT INTO "manifests" VALUES('words/000001-946b1abedf624263/20210301T000000Z/one.manifest.json','words',1,'946b1abedf624263','20210301T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-946b1abedf624263/20210301T000000Z/two.manifest.json','words',1,'946b1abedf624263','20210301T000000Z',86400,'two','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-946b1abedf624263/20210302T000000Z/one.manifest.json','words',1,'946b1abedf624263','20210302T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-946b1abedf624263/20210303T000000Z/one.manifest.json','words',1,'946b1abedf624263','20210303T000000Z',86400,'one','none','{}',0);
INSERT INTO "manifests" VALUES('words/000001-946b1abedf624263/20210307T000000Z/one.manifest.json','words',1,'946b1abedf624263','20210307T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-946b1abedf624263/20210311T000000Z/one.manifest.json','words',1,'946b1abedf624263','20210311T000000Z',86400,'one','client-token','{}',0);
CREATE TABLE runs (
	token BIGINT NOT NULL, 
	owner VARCHAR NOT NULL, 
	at VARCHAR
);
INSERT INTO "runs" VALUES(1,'cbb584ea9cbba48d','2026-11-23T06:45:42.542096+00:00');
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
INSERT INTO "segments" VALUES('words/000001-946b1abedf624263/20210301T000000Z/reports/one-000000.blocks','words',1,'946b1abedf624263','20210301T000000Z','reports',72,7696,'4bc88e9de21769f6c1eebbfc4a020d1a0ae7c1e557d63ed53451fc16d31467b5','client-token','batched','20210301T000000Z-000001-946b1abedf624263',NULL);
INSERT INTO "segments" VALUES('words/000001-946b1abedf624263/20210301T000000Z/discovery/one-000000.blocks','words',1,'946b1abedf624263','20210301T000000Z','discovery',72,15832,'241add2478980895f0f1b0c9fe41f58bb277de48ae4267e4241d9b71c29052ff','client-token','batched','20210301T000000Z-000001-946b1abedf624263',NULL);
INSERT INTO "segments" VALUES('words/000001-946b1abedf624263/20210301T000000Z/reports/two-000000.blocks','words',1,'946b1abedf624263','20210301T000000Z','reports',57,6121,'3d064f5a80585a20a998a358df6721cc43cb72fd4cfadda001f3e3686d90e595','client-token','batched','20210301T000000Z-000001-946b1abedf624263',NULL);
INSERT INTO "segments" VALUES('words/000001-946b1abedf624263/20210302T000000Z/reports/one-000000.blocks','words',1,'946b1abedf624263','20210302T000000Z','reports',9,1081,'a921988602813bcd9af1afe2bb86e42cedb65f331818dab15d248eae5c2368a5','client-token','batched','20210303T000000Z-000001-946b1abedf624263',NULL);
INSERT INTO "segments" VALUES('words/000001-946b1abedf624263/20210302T000000Z/discovery/one-000000.blocks','words',1,'946b1abedf624263','20210302T000000Z','discovery',9,2098,'097b2f521bec23dc11fad9a404ce520b5339fc6ff6f8f70ec8805c905a279da0','client-token','too_late',NULL,'grace ended before 20210307T000000Z closed');
INSERT INTO "segments" VALUES('words/000001-946b1abedf624263/20210303T000000Z/reports/one-000000.blocks','words',1,'946b1abedf624263','20210303T000000Z','reports',51,5491,'bc0427913d4e8452c38a59ed854a791fb18da824c39c8a8d5528f6d9064b0c39','none','batched','20210303T000000Z-000001-946b1abedf624263',NULL);
INSERT INTO "segments" VALUES('words/000001-946b1abedf624263/20210307T000000Z/reports/one-000000.blocks','words',1,'946b1abedf624263','20210307T000000Z','reports',54,5806,'51c9ce9e7d7ef69365e9557c4c39181551f25d80c344e1e5ca3461655fd4a457','client-token','batched','20210307T000000Z-000001-946b1abedf624263',NULL);
INSERT INTO "segments" VALUES('words/000001-946b1abedf624263/20210311T000000Z/reports/one-000000.blocks','words',1,'946b1abedf624263','20210311T000000Z','reports',12,1396,'d6153ad06bf6d9d96cd77ecd5039329aa5d6ed6be6c127c74de38a4df4b70aa5','client-token','too_late',NULL,'grace ended, and no window closed');
CREATE TABLE windows (
	campaign VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	closed_at VARCHAR NOT NULL, 
	seconds INTEGER NOT NULL, 
	PRIMARY KEY (campaign, window)
);
INSERT INTO "windows" VALUES('words','20210301T000000Z','2026-11-23T06:45:42.542096+00:00',86400);
INSERT INTO "windows" VALUES('words','20210302T000000Z','2026-11-23T06:45:42.542096+00:00',86400);
INSERT INTO "windows" VALUES('words','20210303T000000Z','2026-11-23T06:45:42.542096+00:00',86400);
INSERT INTO "windows" VALUES('words','20210307T000000Z','2026-11-23T06:45:42.542096+00:00',86400);
INSERT INTO "windows" VALUES('words','20210311T000000Z','2026-11-23T06:45:42.542096+00:00',86400);
COMMIT;
