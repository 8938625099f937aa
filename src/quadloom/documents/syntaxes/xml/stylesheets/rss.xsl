<?xml version="1.0" encoding="UTF-8"?>
<!-- RSS 0.91 to 2.0 as RDF, in the vocabulary of RSS 1.0 (docs/reference/vocabulary.md).
     Says the same as quadloom/syntaxes/feeds/xml_feeds.py for feeds without mistakes; a test compares the two. -->
<xsl:stylesheet version="1.0"
    xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:ql="urn:quadloom:xslt"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:rss="http://purl.org/rss/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:dcterms="http://purl.org/dc/terms/"
    xmlns:content="http://purl.org/rss/1.0/modules/content/"
    xmlns:enc="http://purl.oclc.org/net/rss_2.0/enc#"
    xmlns:foaf="http://xmlns.com/foaf/0.1/"
    exclude-result-prefixes="ql">
  <xsl:param name="url"/>
  <xsl:variable name="language" select="normalize-space(/rss/channel/language)"/>

  <xsl:template match="/">
    <rdf:RDF>
      <xsl:apply-templates select="rss/channel"/>
      <xsl:apply-templates select="rss/channel/item"/>
    </rdf:RDF>
  </xsl:template>

  <xsl:template match="channel">
    <rss:channel rdf:about="{$url}">
      <xsl:if test="$language"><dc:language><xsl:value-of select="$language"/></dc:language></xsl:if>
      <xsl:call-template name="words"/>
      <xsl:for-each select="lastBuildDate"><xsl:call-template name="date">
        <xsl:with-param name="property" select="'dcterms:modified'"/>
      </xsl:call-template></xsl:for-each>
      <xsl:for-each select="image/url">
        <foaf:depiction rdf:resource="{ql:resolve(., $url)}"/>
      </xsl:for-each>
      <xsl:for-each select="item[link]">
        <dcterms:hasPart rdf:resource="{ql:resolve(link, $url)}"/>
      </xsl:for-each>
    </rss:channel>
  </xsl:template>

  <xsl:template match="item[link]">
    <rss:item rdf:about="{ql:resolve(link, $url)}">
      <xsl:call-template name="words"/>
      <xsl:if test="guid and normalize-space(guid) != ql:resolve(link, $url)">
        <dc:identifier><xsl:value-of select="normalize-space(guid)"/></dc:identifier>
      </xsl:if>
      <xsl:for-each select="enclosure">
        <enc:enclosure>
          <rdf:Description rdf:about="{ql:resolve(@url, $url)}">
            <xsl:if test="@type"><enc:type><xsl:value-of select="@type"/></enc:type></xsl:if>
            <xsl:if test="@length">
              <enc:length rdf:datatype="http://www.w3.org/2001/XMLSchema#integer"><xsl:value-of select="@length"/></enc:length>
            </xsl:if>
          </rdf:Description>
        </enc:enclosure>
      </xsl:for-each>
    </rss:item>
  </xsl:template>
  <xsl:template match="item"/>

  <xsl:template name="words">
    <xsl:call-template name="text">
      <xsl:with-param name="property" select="'rss:title'"/>
      <xsl:with-param name="value" select="ql:plain(title)"/>
    </xsl:call-template>
    <xsl:if test="link"><rss:link rdf:resource="{ql:resolve(link, $url)}"/></xsl:if>
    <xsl:call-template name="text">
      <xsl:with-param name="property" select="'rss:description'"/>
      <xsl:with-param name="value" select="ql:plain(description)"/>
    </xsl:call-template>
    <xsl:call-template name="text">
      <xsl:with-param name="property" select="'content:encoded'"/>
      <xsl:with-param name="value" select="string(content:encoded)"/>
    </xsl:call-template>
    <xsl:call-template name="text">
      <xsl:with-param name="property" select="'dc:rights'"/>
      <xsl:with-param name="value" select="ql:plain(copyright)"/>
    </xsl:call-template>
    <xsl:for-each select="author | managingEditor | dc:creator">
      <dc:creator><xsl:value-of select="ql:plain(.)"/></dc:creator>
    </xsl:for-each>
    <xsl:for-each select="category | dc:subject">
      <xsl:call-template name="text">
        <xsl:with-param name="property" select="'dc:subject'"/>
        <xsl:with-param name="value" select="normalize-space(.)"/>
      </xsl:call-template>
    </xsl:for-each>
    <xsl:for-each select="(pubDate | dc:date)[1]"><xsl:call-template name="date">
      <xsl:with-param name="property" select="'dc:date'"/>
    </xsl:call-template></xsl:for-each>
  </xsl:template>

  <xsl:template name="text">
    <xsl:param name="property"/>
    <xsl:param name="value"/>
    <xsl:if test="$value != ''">
      <xsl:element name="{$property}">
        <xsl:if test="$language"><xsl:attribute name="xml:lang"><xsl:value-of select="$language"/></xsl:attribute></xsl:if>
        <xsl:value-of select="$value"/>
      </xsl:element>
    </xsl:if>
  </xsl:template>

  <xsl:template name="date">
    <xsl:param name="property"/>
    <xsl:variable name="moment" select="ql:date-time(.)"/>
    <xsl:element name="{$property}">
      <xsl:choose>
        <xsl:when test="$moment != ''">
          <xsl:attribute name="rdf:datatype">http://www.w3.org/2001/XMLSchema#dateTime</xsl:attribute>
          <xsl:value-of select="$moment"/>
        </xsl:when>
        <xsl:otherwise><xsl:value-of select="normalize-space(.)"/></xsl:otherwise>
      </xsl:choose>
    </xsl:element>
  </xsl:template>
</xsl:stylesheet>
